"""The forecast of a job's wait, as the API, the command and the page all have it.

Says of each field how it is coarsened for those who may see less. Imports pydantic alone.

Public names: `ForecastAnswer`, `BriefForecast`, `PendingForecasts`, `Advice`, `coarsened`.
"""
