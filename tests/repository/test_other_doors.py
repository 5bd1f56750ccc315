"""The course opened elsewhere: with the old ipywidgets and IPython of Colab. (Binder: test_house_rules.)"""

from __future__ import annotations

import json
import os
import subprocess
from types import SimpleNamespace

import pytest
from tiny_project import BASE_PYTHON, ROOT

#: What Colab brings of what matters to widgets (August 2026), and what a view needs beside them.
OF_COLAB = ("ipywidgets==7.7.1", "ipython==7.34.0", "ipykernel==6.17.1")
BESIDE = ("numpy", "matplotlib", "nbclient", "nbformat")
VIEW_TYPE = "application/vnd.jupyter.widget-view+json"

SHOWS = """
import json, nbclient, nbformat
cells = [nbformat.v4.new_code_cell("from course_lib import views\\nviews.ring(2)")]
notebook = nbformat.v4.new_notebook(cells=cells)
nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
print(json.dumps([output.get("data", output) for output in notebook.cells[0].outputs]))
"""


def test_widgets_of_the_old_kind_show_themselves_and_their_twin():
    """ipywidgets 7 has no `_repr_mimebundle_`, but a `model_id` by which a page finds the widget."""
    from course_lib.views.live import Live
    from course_lib.views.paper import Html

    class View(Live):
        def __init__(self, widget):
            self.widget = widget

        def static(self):
            return Html("<b>still</b>", "still")

    old = View(SimpleNamespace(model_id="abc"))._repr_mimebundle_()
    assert old[VIEW_TYPE] == {"version_major": 2, "version_minor": 0, "model_id": "abc"}
    new = View(SimpleNamespace(_repr_mimebundle_=lambda: {VIEW_TYPE: "new"}))._repr_mimebundle_()
    assert new[VIEW_TYPE] == "new"
    assert old["text/html"] == new["text/html"] == "<b>still</b>" and old["text/plain"] == "still"


@pytest.mark.slow
def test_a_view_with_colabs_versions(tmp_path):
    python = tmp_path / "colab" / "bin" / "python"
    subprocess.run([BASE_PYTHON, "-m", "venv", tmp_path / "colab"], check=True)
    subprocess.run([python, "-m", "pip", "install", "-q", *OF_COLAB, *BESIDE], check=True)
    environment = os.environ | {"PYTHONPATH": str(ROOT), "JUPYTER_PATH": "", "IPYTHONDIR": str(tmp_path)}
    done = subprocess.run([python, "-c", SHOWS], capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr
    (shown,) = json.loads(done.stdout.splitlines()[-1])
    assert shown[VIEW_TYPE]["model_id"] and "<svg" in shown["text/html"], "the widget, and its still twin"
