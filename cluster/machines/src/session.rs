//! What is said to etcd, and heard from it: one session after another, each as long as etcd
//! answers.
//!
//! A session renews the lease, reads what is there, and from then on does what the manager orders,
//! follows the changes, and asks now and then whether it has missed one.

use std::error::Error as _;
use std::time::Duration;

use attune_cluster::database::{self, HEARTBEAT, ManagerId, State, Told};
use etcd_client::{
    Client, Compare, CompareOp, Error, EventType, GetOptions, KeyValue, PutOptions, Txn, TxnOp,
    TxnOpResponse, WatchOptions, WatchResponse, WatchStream,
};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use crate::{Access, Order, Teller};

/// An answer that takes longer does not come.
pub const PATIENCE: Duration = Duration::from_secs(1);
/// How soon etcd is tried again.
const AGAIN: Duration = Duration::from_millis(200);

/// Where what is in etcd.
pub struct Keys {
    all: String,
    state: String,
    managers: String,
    own: String,
    number: ManagerId,
}

impl Keys {
    pub fn of(cluster: &str, own: ManagerId) -> Keys {
        let all = format!("attune/{cluster}/");
        let managers = format!("{all}managers/");
        Keys {
            state: format!("{all}state"),
            own: format!("{managers}{own:016x}"),
            number: own,
            managers,
            all,
        }
    }
}

/// Serves until the manager leaves or has ended.
pub async fn run(
    access: &Access,
    keys: &Keys,
    mut orders: UnboundedReceiver<Order>,
    teller: &Teller,
) {
    let mut lease = 0;
    let mut reason = None;
    loop {
        let error = match Session::begin(access, keys, lease, teller).await {
            Ok(mut session) => {
                reason = None;
                let served = session.serve(&mut orders).await;
                lease = session.lease;
                match served {
                    Ok(()) => return,
                    Err(error) => error,
                }
            }
            Err(error) => error,
        };
        let error = in_words(&error);
        if reason.as_ref() != Some(&error) {
            teller.tell(Told::Away(error.clone()));
            reason = Some(error);
        }
        tokio::select! {
            () = sleep(AGAIN) => {}
            left = left_meanwhile(&mut orders) => {
                drop(left);
                return;
            }
        }
    }
}

/// Ends when the manager leaves while etcd is away. What is to be put then is not put: the manager
/// hears what is there first.
async fn left_meanwhile(orders: &mut UnboundedReceiver<Order>) -> Option<Order> {
    loop {
        match orders.recv().await {
            Some(Order::Put { .. }) => {}
            leave => return leave,
        }
    }
}

fn in_words(error: &Error) -> String {
    let mut words = error.to_string();
    let mut source = error.source();
    while let Some(deeper) = source {
        let more = deeper.to_string();
        if !words.contains(&more) {
            words = format!("{words}: {more}");
        }
        source = deeper.source();
    }
    words
}

struct Session<'a> {
    client: Client,
    watch: WatchStream,
    lease: i64,
    keys: &'a Keys,
    teller: &'a Teller,
    /// What the manager was told last; of the state its revision.
    seen: u64,
    managers: Vec<ManagerId>,
}

impl<'a> Session<'a> {
    async fn begin(
        access: &Access,
        keys: &'a Keys,
        lease: i64,
        teller: &'a Teller,
    ) -> Result<Session<'a>, Error> {
        let options = Some(access.options());
        let mut client = within(Client::connect(&access.endpoints, options)).await?;
        // What changes after this is heard of, and what was before is read after this.
        let follow = WatchOptions::new().with_prefix();
        let watch = within(client.watch(keys.all.as_str(), Some(follow))).await?;
        let (seen, managers) = (0, Vec::new());
        let mut session = Session { client, watch, lease, keys, teller, seen, managers };
        session.renew().await?;
        session.read().await?;
        Ok(session)
    }

    /// Renews the lease, or takes a new one.
    async fn renew(&mut self) -> Result<(), Error> {
        if self.lease != 0 {
            match within(self.client.lease_keep_alive(self.lease)).await {
                Ok(_) => return Ok(()),
                // It has ended.
                Err(Error::LeaseKeepAliveError(_)) => {}
                Err(error) => return Err(error),
            }
        }
        let patience = database::PATIENCE.as_secs() as i64;
        self.lease = within(self.client.lease_grant(patience, None)).await?.id();
        let put = PutOptions::new().with_lease(self.lease);
        within(self.client.put(self.keys.own.as_str(), "", Some(put))).await?;
        Ok(())
    }

    async fn serve(&mut self, orders: &mut UnboundedReceiver<Order>) -> Result<(), Error> {
        let mut ticks = interval(HEARTBEAT);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                order = orders.recv() => {
                    let mut order = order;
                    // Only the last put counts.
                    while let (Some(Order::Put { .. }), Ok(later)) = (&order, orders.try_recv()) {
                        order = Some(later);
                    }
                    match order {
                        Some(Order::Put { number, seen, bytes }) => {
                            self.put(number, seen, bytes).await?;
                        }
                        Some(Order::Leave { seen, left }) => {
                            self.leave(seen).await?;
                            let _ = left.send(());
                            return Ok(());
                        }
                        None => return Ok(()),
                    }
                }
                heard = self.watch.message() => self.follow(heard?).await?,
                _ = ticks.tick() => {
                    self.renew().await?;
                    self.look().await?;
                }
            }
        }
    }

    /// Tells what has changed.
    async fn follow(&mut self, heard: Option<WatchResponse>) -> Result<(), Error> {
        let Some(heard) = heard.filter(|heard| !heard.canceled()) else {
            return Err(Error::WatchError("etcd has ended the watch".to_owned()));
        };
        let mut newest = None;
        for event in heard.events() {
            let state = event.kv().filter(|kv| kv.key() == self.keys.state.as_bytes());
            match (event.event_type(), state) {
                (EventType::Put, Some(kv)) => newest = Some(kv),
                // A manager has come or gone, or the state has.
                _ => return self.look().await,
            }
        }
        if let Some(kv) = newest
            && kv.mod_revision() as u64 > self.seen
        {
            let managers = self.managers.clone();
            self.found(State { managers, ..state_of(kv) });
        }
        Ok(())
    }

    async fn put(&mut self, number: u64, seen: u64, bytes: Vec<u8>) -> Result<(), Error> {
        let put = TxnOp::put(self.keys.state.as_str(), bytes, None);
        let transaction = Txn::new().when([self.unchanged(seen)]).and_then([put]);
        let transaction = transaction.or_else(self.all());
        let answer = within(self.client.txn(transaction)).await?;
        if answer.succeeded() {
            let revision = answer.header().map_or(0, |header| header.revision()) as u64;
            self.seen = revision;
            self.teller.tell(Told::Put { number, revision });
        } else {
            self.found(state_in(&answer.op_responses()));
        }
        Ok(())
    }

    /// Whether something has changed since it was told last.
    async fn look(&mut self) -> Result<(), Error> {
        let transaction = Txn::new().when([self.unchanged(self.seen)]);
        let transaction = transaction.and_then([self.present()]).or_else(self.all());
        let answer = within(self.client.txn(transaction)).await?;
        let state = state_in(&answer.op_responses());
        if answer.succeeded() && state.managers == self.managers {
            self.teller.tell(Told::Same);
        } else if answer.succeeded() {
            self.read().await?;
        } else {
            self.found(state);
        }
        Ok(())
    }

    /// State and managers at one moment: the state knows no node of a manager that is missing here.
    async fn read(&mut self) -> Result<(), Error> {
        let answer = within(self.client.txn(Txn::new().and_then(self.all()))).await?;
        self.found(state_in(&answer.op_responses()));
        Ok(())
    }

    fn unchanged(&self, seen: u64) -> Compare {
        Compare::mod_revision(self.keys.state.as_str(), CompareOp::Equal, seen as i64)
    }

    fn present(&self) -> TxnOp {
        let options = GetOptions::new().with_prefix().with_keys_only();
        TxnOp::get(self.keys.managers.as_str(), Some(options))
    }

    fn all(&self) -> [TxnOp; 2] {
        [TxnOp::get(self.keys.state.as_str(), None), self.present()]
    }

    fn found(&mut self, state: State) {
        self.seen = state.revision;
        self.managers.clone_from(&state.managers);
        if !self.managers.contains(&self.keys.number) {
            // Somebody has removed the manager's key, and its lease does not bring it back.
            self.lease = 0;
        }
        self.teller.tell(Told::Found(state));
    }

    async fn leave(&mut self, seen: u64) -> Result<(), Error> {
        within(self.client.lease_revoke(self.lease)).await?;
        // Its end takes the manager's key along.
        let others = Compare::create_revision(self.keys.managers.as_str(), CompareOp::Equal, 0)
            .with_prefix();
        let remove = TxnOp::delete(self.keys.state.as_str(), None);
        let transaction = Txn::new().when([self.unchanged(seen), others]).and_then([remove]);
        within(self.client.txn(transaction)).await?;
        Ok(())
    }
}

/// The answer, or that there is none.
async fn within<T>(answer: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    match timeout(PATIENCE, answer).await {
        Ok(answer) => answer,
        Err(_) => Err(Error::Internal("etcd does not answer".to_owned())),
    }
}

fn state_of(kv: &KeyValue) -> State {
    State { revision: kv.mod_revision() as u64, bytes: kv.value().to_vec(), managers: Vec::new() }
}

/// The state and the managers that a transaction got.
fn state_in(answers: &[TxnOpResponse]) -> State {
    let mut state = State::default();
    for answer in answers {
        let TxnOpResponse::Get(got) = answer else { continue };
        for kv in got.kvs() {
            match manager_of(kv.key()) {
                Some(manager) => state.managers.push(manager),
                None => state = State { managers: state.managers, ..state_of(kv) },
            }
        }
    }
    state
}

fn manager_of(key: &[u8]) -> Option<ManagerId> {
    let key = std::str::from_utf8(key).ok()?;
    let (place, number) = key.rsplit_once('/')?;
    place.ends_with("/managers").then(|| ManagerId::from_str_radix(number, 16).ok())?
}
