// Package allocation remembers, across restarts of the agent, which resources pods were
// given and which they have, and decides whether a running pod may have others.
package allocation
