//! What every request has to pass: the name that the browser knows us by, where the request came from, and who sent it.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderName, HeaderValue, ORIGIN,
    REFERRER_POLICY, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::web::App;
use crate::web::auth::Refusal;
use crate::web::html::{Reader, refused};

/// Nothing but our own files, and no script within a page.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; \
                      form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// Lets a request in, or says why not.
pub async fn guard(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let mut response = match let_in(&app, request.headers(), request.method()).await {
        Ok(who) => {
            request.extensions_mut().insert(Reader { who, can_act: !app.read_only });
            said(next.run(request).await)
        }
        Err(response) => *response,
    };
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert(
        HeaderName::from_static("cross-origin-opener-policy"),
        HeaderValue::from_static("same-origin"),
    );
    // What is in a store is not for a disk.
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// A page that was given up in the middle has nothing on it.
fn said(response: Response) -> Response {
    if response.status() == StatusCode::SERVICE_UNAVAILABLE && !response.headers().contains_key(CONTENT_TYPE)
    {
        return refused(
            StatusCode::SERVICE_UNAVAILABLE,
            "The store is too slow for this page.",
            "This page tries again by itself.",
        );
    }
    response
}

/// What is to be done is done to its end, and logged, also if whoever asked for it does not wait.
pub async fn to_the_end(request: Request, next: Next) -> Response {
    if request.method() == Method::GET || request.method() == Method::HEAD {
        return next.run(request).await;
    }
    tokio::spawn(next.run(request)).await.unwrap_or_else(|_| {
        refused(
            StatusCode::INTERNAL_SERVER_ERROR,
            "This failed.",
            "Look at what is there now before you try again.",
        )
    })
}

async fn let_in(app: &App, headers: &HeaderMap, method: &Method) -> Result<String, Box<Response>> {
    let refuse = |status, what: &str, next: &str| Box::new(refused(status, what, next));
    let host = text(headers, HOST.as_str()).map(|host| without_port(host).to_ascii_lowercase());
    if !host.as_ref().is_some_and(|host| is_ours(host, &app.hosts)) {
        let host = host.unwrap_or_default();
        return Err(refuse(
            StatusCode::MISDIRECTED_REQUEST,
            &format!("This dashboard is not known as {host:?}."),
            "Start it with --host and this name, or ask for it by the address of its machine.",
        ));
    }
    let who = app.auth.who(headers).await.map_err(|refusal| Box::new(unknown(&refusal)))?;
    if method == Method::GET || method == Method::HEAD {
        return Ok(who);
    }
    if !is_from_here(headers) {
        return Err(refuse(
            StatusCode::FORBIDDEN,
            "This request came from a page of another site.",
            "Actions are taken on the dashboard's own pages only.",
        ));
    }
    if app.read_only {
        return Err(refuse(
            StatusCode::FORBIDDEN,
            "This dashboard only shows.",
            "Start it without --read-only to act, or use the command that the page shows.",
        ));
    }
    Ok(who)
}

/// A page of somebody else's can have a name point here, but no address: a browser that asks for one was told it by its user, or
/// says that the request comes from another site.
fn is_ours(host: &str, names: &[String]) -> bool {
    host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok() || names.iter().any(|name| name == host)
}

/// Browsers say where a request comes from: in one header for years, in the other since they have it. A program that is no browser
/// says neither, and carries nobody's credentials along unasked.
fn is_from_here(headers: &HeaderMap) -> bool {
    if let Some(site) = text(headers, "sec-fetch-site") {
        return site == "same-origin";
    }
    let Some(origin) = text(headers, ORIGIN.as_str()) else { return true };
    let host = text(headers, HOST.as_str()).unwrap_or_default();
    origin.split_once("://").is_some_and(|(_, origin)| origin.eq_ignore_ascii_case(host))
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => name,
        _ => host,
    }
}

fn unknown(refusal: &Refusal) -> Response {
    match refusal {
        Refusal::NoProxy => refused(
            StatusCode::FORBIDDEN,
            "This request did not come through the proxy.",
            "Ask the proxy, and see that it sets the header that --behind-proxy names.",
        ),
        Refusal::Busy => refused(
            StatusCode::SERVICE_UNAVAILABLE,
            "Too many passwords are being checked.",
            "Try again in a moment.",
        ),
        Refusal::Unknown { basic } => {
            let next =
                if *basic { "Name and password are those of the file of --auth." } else { "Send the token." };
            let mut response = refused(StatusCode::UNAUTHORIZED, "Who are you?", next).into_response();
            let scheme = if *basic { "Basic realm=\"stanchion\", charset=\"UTF-8\"" } else { "Bearer" };
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static(scheme));
            response
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may panic")]
    use super::*;

    #[test]
    fn ports_are_no_part_of_a_name() {
        assert_eq!(["a:1", "a", "[::1]:80", "[::1]"].map(without_port), ["a", "a", "[::1]", "[::1]"]);
    }

    #[test]
    fn addresses_are_ours_and_names_are_if_they_were_given() {
        let names = ["localhost".to_owned()];
        assert!(["127.0.0.1", "[::1]", "10.0.0.7", "localhost"].iter().all(|host| is_ours(host, &names)));
        assert!(
            ["", "evil.test", "127.0.0.1.evil.test", "localhost.evil.test"]
                .iter()
                .all(|host| !is_ours(host, &names))
        );
    }

    #[test]
    fn where_a_request_comes_from() {
        let from = |pairs: &[(&'static str, &str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.insert(*name, value.parse().unwrap());
            }
            is_from_here(&headers)
        };
        assert!(from(&[("sec-fetch-site", "same-origin")]));
        for other in ["cross-site", "same-site", "none"] {
            assert!(!from(&[("sec-fetch-site", other)]), "{other}");
        }
        assert!(from(&[("host", "localhost:7380"), ("origin", "http://localhost:7380")]));
        assert!(!from(&[("host", "localhost:7380"), ("origin", "http://localhost:7381")]));
        assert!(!from(&[("host", "localhost:7380"), ("origin", "null")]));
        assert!(from(&[("host", "localhost:7380")]));
    }
}
