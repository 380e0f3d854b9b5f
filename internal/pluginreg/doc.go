// Package pluginreg watches the plugin registration directory for sockets, reads each plugin's
// info over its socket and registers the plugin with the handler of its type.
package pluginreg
