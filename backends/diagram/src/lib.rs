//! Checked scheduler to a Graphviz picture of its containers and transfers.
