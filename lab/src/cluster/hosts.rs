//! Hosts in network namespaces, joined by a switch, with an etcd on one of them: several machines
//! on one. Needs root, iproute2, util-linux and etcd-server.
//!
//! A namespace lives as long as a process in it, which the kernel ends with the thread that made
//! the network. So nothing stays behind.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use attune_linux::child::end_with_parent;
use attune_linux::process::effective_user;

/// The port on which [`Etcd`] listens.
const PORT: u16 = 2379;

/// What is missing to make a network.
pub fn check() -> Result<()> {
    ensure!(effective_user() == 0, "network namespaces are made by root only: run it as root");
    for (program, package) in [
        ("ip", "iproute2"),
        ("nsenter", "util-linux"),
        ("setpriv", "util-linux"),
        ("unshare", "util-linux"),
        ("etcd", "etcd-server"),
    ] {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        let mut folders = std::env::split_paths(&folders).chain([PathBuf::from("/usr/sbin")]);
        let found = folders.any(|folder| folder.join(program).exists());
        ensure!(found, "there is no {program}: install {package} (tools/setup.sh test)");
    }
    Ok(())
}

/// A host with a network of its own.
pub struct Host {
    holder: Child,
    /// Its address, which all hosts of the network reach.
    pub address: String,
}

impl Host {
    fn new(address: String) -> Result<Host> {
        let mut command = Command::new("unshare");
        command.args(["--net", "--", "sleep", "3600"]).stdin(Stdio::null());
        let mut host = Host { holder: end_with_parent(&mut command).spawn()?, address };
        let own = fs::read_link("/proc/self/ns/net")?;
        let until = Instant::now() + Duration::from_secs(30);
        // Until it has changed its network and runs the other program.
        while fs::read_link(host.namespace()).is_ok_and(|it| it == own)
            || fs::read_to_string(format!("/proc/{}/comm", host.holder.id()))?.trim() != "sleep"
        {
            ensure!(host.holder.try_wait()?.is_none(), "a network of its own was refused");
            ensure!(Instant::now() < until, "a network of its own does not come");
            std::thread::sleep(Duration::from_millis(2));
        }
        host.run("ip", &["link", "set", "lo", "up"])?;
        Ok(host)
    }

    fn namespace(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/ns/net", self.holder.id()))
    }

    /// A command on this host, which ends with the thread that starts it.
    ///
    /// Other programs see to both, so that nothing has to be done between fork and exec: the
    /// standard library then copies no memory (posix_spawn). A copy would make other threads of
    /// this process wait for their memory, and experiments count whether those wait.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut net = OsString::from("--net=");
        net.push(self.namespace());
        let mut command = Command::new("nsenter");
        command.arg(net).args(["--", "setpriv", "--pdeathsig", "KILL", "--"]).arg(program);
        command.stdin(Stdio::null());
        command
    }

    fn run(&self, program: &str, words: &[&str]) -> Result<()> {
        let output = self.command(program).args(words).output().context("nsenter")?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{program} {}: {errors}", words.join(" "));
        Ok(())
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // It has ended already, or does now.
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// Hosts whose links meet in a switch.
pub struct Network {
    switch: Host,
    pub hosts: Vec<Host>,
}

impl Network {
    pub fn of(count: usize) -> Result<Network> {
        let switch = Host::new(String::new())?;
        switch.run("ip", &["link", "add", "bridge", "type", "bridge"])?;
        switch.run("ip", &["link", "set", "bridge", "up"])?;
        let mut hosts = Vec::new();
        for number in 0..count {
            let host = Host::new(format!("10.77.0.{}", number + 1))?;
            let (port, process) = (format!("port{number}"), host.holder.id().to_string());
            let peer = ["peer", "name", "up0", "netns", &process];
            let words = [&["link", "add", &port, "type", "veth"], &peer[..]].concat();
            switch.run("ip", &words)?;
            switch.run("ip", &["link", "set", &port, "master", "bridge", "up"])?;
            let address = format!("{}/24", host.address);
            host.run("ip", &["address", "add", &address, "dev", "up0"])?;
            host.run("ip", &["link", "set", "up0", "up"])?;
            hosts.push(host);
        }
        Ok(Network { switch, hosts })
    }

    /// Nothing reaches that host any more, and nothing comes from it.
    pub fn cut(&self, host: usize) -> Result<()> {
        self.switch.run("ip", &["link", "set", &format!("port{host}"), "down"])
    }

    pub fn mend(&self, host: usize) -> Result<()> {
        self.switch.run("ip", &["link", "set", &format!("port{host}"), "up"])
    }
}

/// An etcd of one member on a host, or on this machine's loopback.
pub struct Etcd {
    child: Child,
    folder: PathBuf,
    address: String,
    words: Vec<String>,
}

impl Etcd {
    /// Keeps its data below `folder`, and goes on with what it finds there. `words` are further
    /// words of its command, such as certificates.
    pub fn start(host: &Host, folder: &Path, words: &[&str]) -> Result<Etcd> {
        let scheme = if words.contains(&"--cert-file") { "https" } else { "http" };
        let address = format!("{scheme}://{}:{PORT}", host.address);
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        Etcd::run(host.command("etcd"), folder.to_owned(), address, words)
    }

    /// On this machine, at a port that nobody has.
    pub fn on_loopback(folder: &Path) -> Result<Etcd> {
        let free = std::net::TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let address = format!("http://127.0.0.1:{free}");
        let mut command = Command::new("etcd");
        end_with_parent(&mut command);
        Etcd::run(command, folder.to_owned(), address, Vec::new())
    }

    /// `command` ends with the lab.
    fn run(
        mut command: Command,
        folder: PathBuf,
        address: String,
        words: Vec<String>,
    ) -> Result<Etcd> {
        fs::create_dir_all(&folder)?;
        let log = File::options().create(true).append(true).open(folder.join("log"))?;
        command
            .arg("--data-dir")
            .arg(folder.join("data"))
            .args(["--listen-client-urls", &address, "--advertise-client-urls", &address])
            // A single member talks to no other.
            .args(["--listen-peer-urls", "http://127.0.0.1:0"])
            .args(&words)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        let child = command.spawn().context("etcd")?;
        Ok(Etcd { child, folder, address, words })
    }

    /// Where managers reach it.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// As by `kill -9`.
    pub fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Again after it was killed, with the data that it had.
    pub fn again(&mut self, host: &Host) -> Result<()> {
        let words = std::mem::take(&mut self.words);
        let (folder, address) = (self.folder.clone(), self.address.clone());
        *self = Etcd::run(host.command("etcd"), folder, address, words)?;
        Ok(())
    }

    /// Waits until it answers on its port. Managers need not: they try again.
    pub fn wait(&mut self) -> Result<()> {
        let until = Instant::now() + Duration::from_secs(60);
        let at = self.address.rsplit('/').next().unwrap_or_default().to_owned();
        while std::net::TcpStream::connect(&at).is_err() {
            if self.child.try_wait()?.is_some() || Instant::now() > until {
                bail!("etcd does not start: see {}", self.folder.join("log").display());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        // It has ended already, or does now.
        let _ = self.kill();
    }
}
