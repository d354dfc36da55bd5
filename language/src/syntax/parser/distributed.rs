//! Distributed schedulers.

use super::Parser;
use crate::diagnostic::codes::syntax as codes;
use crate::syntax::{SyntaxKind, SyntaxKind::*};

const DISTRIBUTED_ITEMS: [SyntaxKind; 7] =
    [NODEFAMILIES_KW, NODES_KW, GLOBAL_KW, ARRIVAL_KW, DEPARTURE_KW, EVENT_KW, QUERY_KW];

impl Parser<'_> {
    pub(super) fn distributed(&mut self) {
        self.start(DISTRIBUTED);
        self.word(DISTRIBUTED_KW);
        self.word(SCHEDULER_KW);
        self.name("the scheduler's name");
        let open = self.open_brace("the scheduler");
        while !matches!(self.current(), EOF | R_BRACE) {
            self.distributed_item();
        }
        self.close_brace(open, "the scheduler");
        self.finish();
    }

    fn distributed_item(&mut self) {
        self.is_too_deep = false;
        let exact = DISTRIBUTED_ITEMS
            .into_iter()
            .find(|&word| self.is_at(word) || self.nth_is_word(0, word));
        match exact.or_else(|| self.meant(&DISTRIBUTED_ITEMS)) {
            Some(NODEFAMILIES_KW) => {
                self.section(NODE_FAMILIES, NODEFAMILIES_KW, Self::node_family)
            }
            Some(NODES_KW) => self.section(NODES, NODES_KW, Self::node_declaration),
            Some(GLOBAL_KW) => self.section(GLOBALS, GLOBAL_KW, Self::declaration),
            Some(ARRIVAL_KW) => self.arrival(ARRIVAL, ARRIVAL_KW),
            Some(DEPARTURE_KW) => self.arrival(DEPARTURE, DEPARTURE_KW),
            Some(word) => self.handler(HANDLER, word, "the handler's name"),
            None => {
                let message =
                    format!("expected a part of a distributed scheduler, found {}", self.found());
                self.error(codes::UNEXPECTED, message, |it| {
                    it.hint(
                        "`nodefamilies`, `nodes`, `global`, `arrival`, `departure`, `event` \
                         or `query`",
                    )
                });
                self.skip_distributed_item();
            }
        }
    }

    /// Skips what is no part of a distributed scheduler: up to its semicolon, or its braces and
    /// all.
    fn skip_distributed_item(&mut self) {
        self.start(ERROR);
        self.bump();
        while !matches!(self.current(), EOF | L_BRACE | R_BRACE | SEMICOLON) {
            self.bump();
        }
        self.finish();
        match self.current() {
            L_BRACE => self.skip_braces(),
            SEMICOLON => self.bump(),
            _ => {}
        }
    }

    fn node_family(&mut self) {
        self.start(NODE_FAMILY);
        if self.expect_string() {
            self.expect(COLON, "before the family's name");
            self.name("the family's name");
            if self.nth_is_word(0, EXPECTS_KW) {
                self.bump_as(EXPECTS_KW);
                self.expect(INT, "for the number of nodes");
            }
            self.semicolon("the node family");
        } else {
            self.skip_statement();
        }
        self.finish();
    }

    fn expect_string(&mut self) -> bool {
        if self.eat(STRING) {
            return true;
        }
        let message = format!("expected the file of a node scheduler, found {}", self.found());
        self.error(codes::UNEXPECTED, message, |it| it.hint("write `\"web.subsched\" : web;`"));
        false
    }

    fn node_declaration(&mut self) {
        const KINDS: [SyntaxKind; 5] = [NODE_KW, QUEUE_KW, STACK_KW, PQUEUE_KW, PSTACK_KW];
        let kind =
            if KINDS.contains(&self.current()) { Some(self.current()) } else { self.meant(&KINDS) };
        self.start(NODE_DECLARATION);
        if let Some(kind) = kind {
            self.word(kind);
            self.declarators();
            self.semicolon("the declaration");
        } else {
            let message = format!("expected a container of nodes, found {}", self.found());
            self.error(codes::UNEXPECTED, message, |it| {
                it.hint("`node`, `queue`, `stack`, `pqueue` or `pstack`")
            });
            self.skip_statement();
        }
        self.finish();
    }

    fn arrival(&mut self, node: SyntaxKind, word: SyntaxKind) {
        self.start(node);
        self.word(word);
        if self.is_at(L_PAREN) {
            self.parameter();
        } else {
            self.expect(L_PAREN, "and the node's name");
        }
        self.body("the handler");
        self.finish();
    }
}
