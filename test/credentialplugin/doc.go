// Credentialplugin is a credential provider plugin for tests, run by a kubelet whenever it
// wants to open a registry. It notes each request in a file, and answers with the logins
// of another, which may change from run to run; where that is missing, it fails.
package main
