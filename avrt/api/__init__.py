"""The public API: a pipeline from YAML or Python, and what can be done with it.

pipeline = Pipeline.load("pipelines/kitti.yaml")
report = pipeline.replay("drive.mcap", out="run.mcap")
print(report.jobs)
"""

from avrt.api.pipeline import Pipeline
from avrt.api.report import Report
from avrt.model.source import Reading, Source
from avrt.model.stage import Stage, stage

__all__ = ["Pipeline", "Reading", "Report", "Source", "Stage", "stage"]
