// Package observe knows what the runtime holds of every pod, and says when that changes.
//
// News comes from three sides: the runtime's event stream, a full relist that corrects
// what events missed, and Refresh, by which a pod's worker reads its own pod after
// acting on it. They overlap and overtake one another, so nothing is trusted for its
// order of arrival. Two facts about runtimes make merging safe: an id is never used
// again, and a container only moves forward, from created to running to exited. What is
// known of an object therefore never moves back, what was removed never returns, and
// what an event leaves out is looked up instead of believed gone.
package observe
