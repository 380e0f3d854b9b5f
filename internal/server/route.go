package server

import (
	"net/http"
	"slices"
	"strings"
)

// route is one path of the API. The server's mux, /statusz and the test of who may reach
// what are all made from the list of them, so that none is forgotten.
type route struct {
	// path is a pattern of http.ServeMux without a method.
	path string
	// methods are those that it answers to; none means all.
	methods []string
	handler http.HandlerFunc
}

var (
	get       = []string{http.MethodGet}
	post      = []string{http.MethodPost}
	getOrPost = []string{http.MethodGet, http.MethodPost}
)

// newMux serves the routes. A method that a route does not answer to is refused here and
// not left to the mux, which would answer HEAD wherever it answers GET.
func newMux(routes []route) *http.ServeMux {
	mux := http.NewServeMux()
	for _, r := range routes {
		mux.HandleFunc(r.path, r.serve)
	}
	return mux
}

func (r route) serve(w http.ResponseWriter, request *http.Request) {
	if len(r.methods) > 0 && !slices.Contains(r.methods, request.Method) {
		w.Header().Set("Allow", strings.Join(r.methods, ", "))
		fail(w, http.StatusMethodNotAllowed, "405: Method Not Allowed")
		return
	}
	r.handler(w, request)
}
