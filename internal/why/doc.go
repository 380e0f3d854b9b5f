// Package why says why a pod is not up, is not ready or does not end: it keeps the steps of each pod's start
// and end as they are executed, and describes them in a sentence and a tree.
package why
