"""Readers: one for each kind of Kubernetes job, each makes a JobPlan of it or refuses it by the path of a field."""
