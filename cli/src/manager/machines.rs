//! How `attune manager --at` reaches etcd: addresses, certificates, a name with a password.

use std::path::Path;

use attune_cluster_machines::{Access, Certificate, Identity};

use crate::args::MachinesArgs;
use crate::failure::Failure;

pub fn access(args: &MachinesArgs) -> Result<Access, Failure> {
    for url in &args.at {
        if !url.starts_with("http://") && !url.starts_with("https://") {
            return Err(Failure::usage(format!(
                "--at {url}: wants http://HOST:PORT, or https://HOST:PORT"
            )));
        }
    }
    let authority = args.ca.as_deref().map(read).transpose()?.map(Certificate::from_pem);
    let identity = match (&args.cert, &args.key) {
        (Some(cert), Some(key)) => Some(Identity::from_pem(read(cert)?, read(key)?)),
        _ => None,
    };
    let user = match (&args.user, &args.password_file) {
        (Some(user), Some(file)) => {
            let text = read(file)?;
            let password = text.lines().next().unwrap_or_default().to_owned();
            Some((user.clone(), password))
        }
        _ => None,
    };
    Ok(Access { endpoints: args.at.clone(), authority, identity, user })
}

fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|error| Failure::file("read", path, error))
}
