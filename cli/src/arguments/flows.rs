//! The arguments of `stanchion flows`.

use clap::Subcommand;

/// Look at flows, tasks of which some wait for others, and cancel or retry them
#[derive(Subcommand)]
pub enum FlowsVerb {
    /// List the flows of a queue: those that run, the latest first, then those that have ended
    #[command(visible_alias = "list")]
    Ls {
        /// The queue's name
        queue: String,
    },
    /// Show one flow with its nodes
    Show {
        /// The queue's name
        queue: String,
        /// The flow's id
        id: String,
    },
    /// End a flow that runs
    ///
    /// Its tasks that wait go, and those that run are told. Of the nodes that are not in their queues yet only those still
    /// run that wait for nothing but the end of others.
    Cancel {
        /// The queue's name
        queue: String,
        /// The flow's id
        id: String,
    },
    /// Try again what did not succeed in a flow
    Retry {
        /// The queue's name
        queue: String,
        /// The flow's id
        id: String,
    },
}
