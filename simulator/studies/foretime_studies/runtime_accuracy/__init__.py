"""Estimators by the measures of other papers."""
