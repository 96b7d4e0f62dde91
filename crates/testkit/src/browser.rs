//! Loads a page in a real headless browser and runs a test's script in it.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::ScratchDir;

/// The value that a script returned, and the log of the browser.
#[derive(Clone, Debug)]
pub struct ScriptOutput {
    pub result: Value,
    pub log: String,
}

impl ScriptOutput {
    /// Returns the first line that the page logged to the console: an error or a policy violation.
    pub fn complaint(&self) -> Option<&str> {
        self.log.lines().find(|line| line.contains("CONSOLE"))
    }
}

/// Opens a page in a window of this size at `address`, which is empty or begins with `#`. The
/// script runs at the end of the page and returns its value by calling `result(value)`. Fails if it
/// never does.
pub fn open(page: &str, size: (u32, u32), address: &str, script: &str) -> io::Result<ScriptOutput> {
    let scratch = ScratchDir::on_disk().map_err(io::Error::other)?;
    let path = scratch.path().join("page.html");
    let script = format!("<script>{RESULT}{script}</script></body>");
    fs::write(&path, page.replace("</body>", &script))?;
    let (dom, log) = dump(&path, size, address, scratch.path())?;
    Ok(ScriptOutput { result: value(&dom, &log)?, log })
}

/// Extracts the script's result from the document.
fn value(dom: &str, log: &str) -> io::Result<Value> {
    let found = dom.split_once(MARK).and_then(|(_, rest)| rest.split_once("</pre>"));
    let (json, _) =
        found.ok_or_else(|| io::Error::other(format!("the script made nothing: {log}")))?;
    let json = json.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    Ok(serde_json::from_str(&json)?)
}

/// Opens pages side by side in one browser process, each in a frame of its width in pixels, and
/// runs a script at the end of each, as [`open`] does.
pub fn open_each(pages: &[(&str, u32)], script: &str) -> io::Result<Vec<ScriptOutput>> {
    let scratch = ScratchDir::on_disk().map_err(io::Error::other)?;
    let mut frames = String::new();
    for (number, (page, width)) in pages.iter().enumerate() {
        let tell = format!(
            "<script>const result = (value) => parent.postMessage([{number}, value], \"*\");\
             {script}</script></body>"
        );
        let name = format!("{number}.html");
        fs::write(scratch.path().join(&name), page.replace("</body>", &tell))?;
        let _ =
            write!(frames, "<iframe src={name} style=\"width:{width}px;height:900px\"></iframe>");
    }
    let count = pages.len();
    let gather = format!("<script>const pages = {count};{RESULT}{GATHER}</script>{frames}");
    let path = scratch.path().join("all.html");
    fs::write(&path, gather)?;
    let (dom, log) = dump(&path, (1600, 900), "", scratch.path())?;
    let made = value(&dom, &log)?;
    let made: Vec<Value> = serde_json::from_value(made)?;
    let lines = |number: usize| {
        let of = format!("/{number}.html");
        log.lines().filter(|line| line.contains(&of)).collect::<Vec<_>>().join("\n")
    };
    Ok(made
        .into_iter()
        .enumerate()
        .map(|(n, result)| ScriptOutput { result, log: lines(n) })
        .collect())
}

const GATHER: &str = r"
const values = [];
let told = 0;
addEventListener('message', ({ data: [number, value] }) => {
  values[number] = value;
  told += 1;
  if (told === pages) result(values);
});
";

fn dump(page: &Path, size: (u32, u32), address: &str, home: &Path) -> io::Result<(String, String)> {
    let output = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"])
        .args(["--dump-dom", "--virtual-time-budget=20000"])
        .arg(format!("--window-size={},{}", size.0, size.1))
        .arg(format!("--user-data-dir={}", home.join("profile").display()))
        .arg(format!("file://{}{address}", page.display()))
        .output()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok((text(&output.stdout), text(&output.stderr)))
}

const MARK: &str = "<pre id=\"result\">";
const RESULT: &str = r#"
const result = (value) => {
  const node = document.createElement("pre");
  node.id = "result";
  node.textContent = JSON.stringify(value);
  document.body.append(node);
};
"#;
