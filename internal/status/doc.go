// Package status publishes pod statuses to the API server: one write per change, in order for each
// pod, retried until it succeeds.
package status
