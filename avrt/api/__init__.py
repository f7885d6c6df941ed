"""The public API: a pipeline from YAML or Python, and what can be done with it.

pipeline = Pipeline.load("pipelines/kitti.yaml")
report = pipeline.replay("drive.mcap", out="run.mcap")
print(report.jobs)
"""

from avrt.api.pipeline import Pipeline
from avrt.api.report import Report
from avrt.drivers.orders import Orders
from avrt.model.source import Reading, Source
from avrt.model.stage import Stage, stage

__all__ = ["Orders", "Pipeline", "Reading", "Report", "Source", "Stage", "stage"]
