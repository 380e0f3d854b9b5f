package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"swiftlet/test/fakeapi"
)

// reviews answers the kubelet's questions about its own clients: all may do everything.
var reviews = map[string]string{
	"/apis/authentication.k8s.io/v1/tokenreviews":        `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","status":{"authenticated":true,"user":{"username":"growth"}}}`,
	"/apis/authorization.k8s.io/v1/subjectaccessreviews": `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","status":{"allowed":true}}`,
}

// serveAPI serves a simulated API server over HTTP.
func serveAPI(api *fakeapi.Server) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if review, ok := reviews[r.URL.Path]; ok {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, review)
			return
		}
		answer, err := api.RoundTrip(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		defer answer.Body.Close()
		for name, values := range answer.Header {
			w.Header().Set(name, strings.Join(values, ", "))
		}
		w.WriteHeader(answer.StatusCode)
		forward(w, answer.Body)
	})
}

// forward sends each event of a watch at once.
func forward(w http.ResponseWriter, body io.Reader) {
	flusher, _ := w.(http.Flusher)
	flusher.Flush()
	part := make([]byte, 64<<10)
	for {
		n, err := body.Read(part)
		if _, failed := w.Write(part[:n]); failed != nil || err != nil {
			return
		}
		flusher.Flush()
	}
}
