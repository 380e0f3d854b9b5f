// Package restoration replaces the store of the lone node's API server, and the keys that belong to it, as one: a
// crash at any time leaves the previous ones or the restored ones, and nothing else.
//
// The restored store and keys are staged beside the present ones. One rename decides that they replace these, and
// what then is left to do is done by whoever opens the store next.
package restoration
