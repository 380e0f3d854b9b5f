// Package clip limits texts of others: of pods, the runtime, plugins, registries and clients. Such a text
// ends up in a status, an event, an error or a log, and its writer must not choose their size.
package clip
