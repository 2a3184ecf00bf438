//! Flows: what is put in, and what is found.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use stanchion::{FlowInfo, FlowInput, FlowPage, NodeInfo};

use crate::args::Text;
use crate::error::wrong;
use crate::results::{IntoPython, object, wall};
use crate::task::Task;

/// A node to put in.
#[pyclass(frozen, from_py_object)]
#[derive(Clone)]
pub(crate) struct Node {
    node: stanchion::Node,
    after_all: Option<AfterAll>,
}

#[pymethods]
impl Node {
    #[new]
    #[pyo3(signature = (task, *, queue, after, after_end, after_failure, after_all))]
    fn new(
        task: Task,
        queue: Option<Text>,
        after: Vec<Text>,
        after_end: Vec<Text>,
        after_failure: Vec<Text>,
        after_all: Option<AfterAll>,
    ) -> Self {
        let mut node = stanchion::Node::new(task.0);
        for name in after {
            node = node.after(name.0);
        }
        for name in after_end {
            node = node.after_end(name.0);
        }
        for name in after_failure {
            node = node.after_failure(name.0);
        }
        if let Some(queue) = queue {
            node = node.queue(queue.0);
        }
        Self { node, after_all }
    }
}

/// What a node waits for of all others.
#[derive(Clone, Copy)]
enum AfterAll {
    Then,
    Failed,
    Finally,
}

impl<'a, 'py> FromPyObject<'a, 'py> for AfterAll {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let told = match value.extract::<Text>() {
            Ok(Text(word)) if word == "then" => Some(Self::Then),
            Ok(Text(word)) if word == "failed" => Some(Self::Failed),
            Ok(Text(word)) if word == "finally" => Some(Self::Finally),
            _ => None,
        };
        told.ok_or_else(|| wrong(&value, "is then, failed or finally"))
    }
}

pub(crate) fn flow(id: Text, nodes: Vec<Node>) -> stanchion::Flow {
    nodes.into_iter().fold(stanchion::Flow::new(id.0), |flow, Node { node, after_all }| match after_all {
        None => flow.node(node),
        Some(AfterAll::Then) => flow.then(node),
        Some(AfterAll::Failed) => flow.failed(node),
        Some(AfterAll::Finally) => flow.finally(node),
    })
}

/// Nodes to add to a flow. Those that wait for all come with the flow, which the package sees to.
pub(crate) fn added(nodes: Vec<Node>) -> Vec<stanchion::Node> {
    nodes.into_iter().map(|node| node.node).collect()
}

impl IntoPython for FlowInfo {
    fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let counts = PyDict::new(py);
        for (state, count) in self.counts {
            counts.set_item(state.name(), count)?;
        }
        let nodes = self.nodes.into_python(py)?;
        object(py, (self.id, self.state.name(), wall(self.created), self.ended.map(wall), counts, nodes))
    }
}

impl IntoPython for NodeInfo {
    fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let Self { name, state, queue, after, after_end, after_failure, after_all, .. } = self;
        object(py, (name, state.name(), queue, after, after_end, after_failure, after_all))
    }
}

impl IntoPython for FlowPage {
    fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        object(py, (self.flows.into_python(py)?, self.next))
    }
}

/// Its result is absent if it has given none.
impl IntoPython for FlowInput {
    fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let result = self.result.map(|result| PyBytes::new(py, &result));
        object(py, (self.node, self.state.name(), result))
    }
}
