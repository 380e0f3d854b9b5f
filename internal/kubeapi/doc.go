// Package kubeapi talks to the API server: clients with their rate limits, watches of the
// objects that this node uses, cached reads of Secrets, ConfigMaps and tokens, and the event
// recorder.
package kubeapi
