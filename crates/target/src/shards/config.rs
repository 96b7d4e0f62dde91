//! The files that a private ClickHouse server is started with.

use std::fmt::Write as _;
use std::path::Path;

use blockstone_base::units::Bytes;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    pub native: u16,
    pub http: u16,
}

/// The main file. A host knows its `shards` by port and password, as clusters `cells_1` of the
/// first, `cells_2` of the first two and so on.
pub fn server(
    home: &Path,
    users: &Path,
    ports: Ports,
    cache: Bytes,
    (user, shards): (&str, &[(u16, &str)]),
) -> String {
    let mut clusters = String::new();
    for count in 1..=shards.len() {
        let _ = write!(clusters, "<cells_{count}>");
        for (port, password) in &shards[..count] {
            let _ = write!(
                clusters,
                "<shard><replica><host>127.0.0.1</host><port>{port}</port><user>{user}</user>\
                 <password>{password}</password></replica></shard>"
            );
        }
        let _ = write!(clusters, "</cells_{count}>");
    }
    let home = escaped(&home.display().to_string());
    format!(
        "<?xml version=\"1.0\"?>\n<yandex>\n\
         <logger><level>error</level><console>1</console></logger>\n\
         <listen_host>127.0.0.1</listen_host>\n\
         <tcp_port>{}</tcp_port><http_port>{}</http_port>\n\
         <keep_alive_timeout>86400</keep_alive_timeout>\n\
         <path>{home}/data/</path><tmp_path>{home}/tmp/</tmp_path>\n\
         <user_files_path>{home}/files/</user_files_path>\n\
         <mark_cache_size>{}</mark_cache_size>\n\
         <users_config>{}</users_config>\n\
         <default_profile>default</default_profile>\n\
         <default_database>default</default_database>\n\
         <query_log><database>system</database><table>query_log</table>\
         <flush_interval_milliseconds>3600000</flush_interval_milliseconds></query_log>\n\
         <remote_servers>{clusters}</remote_servers>\n</yandex>\n",
        ports.native,
        ports.http,
        cache.get(),
        escaped(&users.display().to_string())
    )
}

/// One user, of the loopback interface, whose statements have one thread.
pub fn users(password: &str) -> String {
    format!(
        "<?xml version=\"1.0\"?>\n<yandex>\n\
         <profiles><default><max_threads>1</max_threads><log_queries>0</log_queries>\
         <use_uncompressed_cache>0</use_uncompressed_cache></default></profiles>\n\
         <users><default><password>{password}</password>\
         <networks><ip>127.0.0.1</ip></networks><profile>default</profile>\
         <quota>default</quota></default></users>\n\
         <quotas><default></default></quotas>\n</yandex>\n"
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_knows_the_first_shards_as_clusters() {
        let ports = Ports { native: 1, http: 2 };
        let text = server(
            Path::new("/a&b"),
            Path::new("/u"),
            ports,
            Bytes::mib(1),
            ("default", &[(7, "x"), (8, "y")]),
        );
        let clusters = text.split_once("<cells_2>").unwrap();
        assert_eq!(clusters.0.matches("<port>").count(), 1, "{text}");
        assert_eq!(clusters.1.matches("<port>").count(), 2, "{text}");
        assert!(text.contains("<path>/a&amp;b/data/</path>"), "{text}");
    }
}
