// Package pluginreg finds the sockets that plugins put into the registration folder, asks
// each what it is, and hands it to the part of the agent that works with its kind.
package pluginreg
