"""How often forecasts and runtimes came true, and bounds that go by it.

Makes no forecast of its own: it corrects those of another.

Public names: `CalibratedForecaster`, `CalibrationSettings`, `RuntimeLevels`.
"""
