// Credentialplugin is a credential provider plugin for tests. The kubelet runs it when it needs
// credentials for a registry. It appends each request to a file, and responds with the logins of
// another file, which tests may change. If that file is missing, it fails.
package main
