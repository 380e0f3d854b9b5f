// Package fakeapi is an API server in memory, as an http.RoundTripper: it needs no socket, so that
// it works with synctest. It serves get, list, watch, create, update, patch and delete of the
// objects that a kubelet uses, in the formats of a real API server, and stores what it is given: it
// neither validates nor sets defaults.
//
//	server := fakeapi.New()
//	cfg.WrapTransport = server.Transport
//	server.SetInterceptor(…)      // fail, delay or lose requests
//	server.BreakWatches()         // all watches end
package fakeapi
