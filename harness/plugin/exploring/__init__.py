"""Explores what a lab has by the steps of scenarios: what is found is a scenario already."""
