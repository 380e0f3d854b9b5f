// Package browser drives Chromium through the page of the agent: on simulated pods of ../fixture, and on those of
// swiftlet up.
package browser
