//! Scenarios played on the whole stack, in virtual time and over real UDP.
