from tests.api_fixtures import anonymous, caller, clean_api, operator

__all__ = ["anonymous", "caller", "clean_api", "operator"]
