"""Where nbgrader finds the assignments and keeps a class's work; all else is nbgrader's own default."""

from contextlib import suppress
from pathlib import Path

c = get_config()  # noqa: F821 – given by nbgrader

HERE = Path(__file__).resolve().parent
CLASS = HERE / "grading"  # names and grades: never in git
with suppress(OSError):  # a learner may have the course in a folder that cannot be written
    CLASS.mkdir(exist_ok=True)

c.CourseDirectory.course_id = "nine-circles"
c.CourseDirectory.root = str(HERE)
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "exercises"
c.CourseDirectory.submitted_directory = "grading/submitted"
c.CourseDirectory.autograded_directory = "grading/autograded"
c.CourseDirectory.feedback_directory = "grading/feedback"
c.CourseDirectory.solution_directory = "grading/solution"
c.CourseDirectory.db_url = f"sqlite:///{(CLASS / 'gradebook.db').as_posix()}"

# What was handed in is read with care and judged outside, in a sandbox. `make grade` does so for a class at
# once, with equal grades.
PLUGIN = "course_lib.grading.classroom.plugin"
c.ExchangeFactory.collect = f"{PLUGIN}.CollectWithoutLinks"
c.Autograde.exporter_class = f"{PLUGIN}.ReleasedNotebookExporter"
c.Autograde.autograde_preprocessors = [
    f"{PLUGIN}.JudgeSubmission",
    f"{PLUGIN}.SaveVerdict",
    "nbgrader.preprocessors.AssignLatePenalties",
    "nbgrader.preprocessors.CheckCellMetadata",
]
c.ReleasedNotebookExporter.class_folder = str(CLASS)
c.ReleasedNotebookExporter.root = str(HERE)
c.JudgeSubmission.class_folder = str(CLASS)
c.JudgeSubmission.root = str(HERE)
