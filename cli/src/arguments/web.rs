//! The arguments of `stanchion web`.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::Args;

/// Where it listens if nobody says otherwise.
const HOME: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 7380);

/// How to serve the dashboard.
#[derive(Args)]
pub struct WebOrder {
    /// Where to listen; any address but a loopback one needs --auth, --token or --behind-proxy
    #[arg(long, default_value_t = HOME, value_name = "ADDRESS:PORT")]
    pub listen: SocketAddr,
    /// Show everything, and refuse every action
    #[arg(long)]
    pub read_only: bool,
    /// Ask for a name and a password, which are in FILE as `htpasswd -B` writes it
    #[arg(long, value_name = "FILE", conflicts_with = "behind_proxy")]
    pub auth: Option<PathBuf>,
    /// Ask for `Authorization: Bearer`, with the token that is the first line of FILE, of 16 characters at least
    #[arg(long, value_name = "FILE", conflicts_with = "behind_proxy")]
    pub token: Option<PathBuf>,
    /// Trust a proxy that has checked who comes, and says so in this header; a request without it is refused
    ///
    /// The proxy has to overwrite the header, and nobody else may reach the port.
    #[arg(long, value_name = "HEADER")]
    pub behind_proxy: Option<String>,
    /// A name under which browsers may ask for it, besides addresses and localhost; may be given several times
    ///
    /// Another Host is refused: a page of somebody else's could have its name point here.
    #[arg(long, value_name = "NAME")]
    pub host: Vec<String>,
    /// Show the payloads of tasks
    #[arg(long)]
    pub show_payloads: bool,
    /// Keep no history of the queues in the store
    #[arg(long)]
    pub no_history: bool,
}
