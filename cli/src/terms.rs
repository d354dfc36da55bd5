//! How `attune check` tells on what terms imports take values: from whom, and within which range.

use attune_language::ir::{Program, Storage, Supplier, Terms, Type};
use attune_values::text;
use serde_json::json;

/// An import of a scheduler.
struct Import<'a> {
    name: &'a str,
    ty: Type,
    terms: Terms,
    /// One for each thread.
    of_thread: bool,
}

fn imports(program: &Program) -> impl Iterator<Item = Import<'_>> {
    let of_threads = program.attributes.values().filter(|attribute| attribute.import);
    let of_threads =
        of_threads.map(|it| Import { name: &it.name, ty: it.ty, terms: it.terms, of_thread: true });
    let global = program.globals.values().filter(|global| global.storage == Storage::Import);
    of_threads.chain(global.map(|it| Import {
        name: &it.name,
        ty: it.ty,
        terms: it.terms,
        of_thread: false,
    }))
}

/// A line for each import whose terms the scheduler states.
pub fn in_words(program: &Program) -> String {
    let stated = imports(program).filter(|import| import.terms != Terms::default());
    let line = |Import { name, ty, terms, .. }: Import<'_>| {
        let bound = |bound: i64| match ty {
            Type::Time => text::time(bound),
            Type::Int | Type::Float => bound.to_string(),
        };
        let range = terms.range.map(|(low, high)| format!("{} to {}", bound(low), bound(high)));
        let supplier = match terms.supplier {
            Supplier::Owner => None,
            Supplier::Loader => Some("programs of root and of the user who loads the policy alone"),
            Supplier::Table => Some("a table by process alone"),
            Supplier::Kernel => Some("the kernel alone"),
        };
        let supplier = supplier.map(|supplier| format!("supplied by {supplier}"));
        let said: Vec<String> = range.into_iter().chain(supplier).collect();
        format!("    import     `{name}`: {}\n", said.join(", "))
    };
    stated.map(line).collect()
}

/// All imports; bounds of times in nanoseconds.
pub fn in_json(program: &Program) -> serde_json::Value {
    let each = imports(program).map(|Import { name, terms, of_thread, .. }| {
        json!({
            "name": name,
            "of_thread": of_thread,
            "within": terms.range.map(|(low, high)| [low, high]),
            "by": terms.supplier.word(),
        })
    });
    each.collect()
}
