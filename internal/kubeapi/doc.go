// Package kubeapi reaches the API server: clients with their rate limits, watches
// limited to what this node uses, cached reads of Secrets, ConfigMaps and tokens,
// and the event recorder.
package kubeapi
