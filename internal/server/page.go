package server

import (
	"encoding/json"
	"net/http"
)

// Sessions are those of people who have come by a link, instead of with a credential.
type Sessions interface {
	// Link returns the path and query of a new link.
	Link() string
	// Claims reports whether a request is for a link or a session, and not for a route.
	Claims(*http.Request) bool
	// Enter returns the path that the request of a session asks for. ok is false if it has responded itself: to a
	// link, and to a request that is not one of a session.
	Enter(http.ResponseWriter, *http.Request) (path string, ok bool)
}

// sessionUser is who the requests of sessions come from. Only the owner of a lone node gives links away.
var sessionUser = user{name: "swiftlet-page", groups: []string{groupMasters}}

func (s *Server) page(w http.ResponseWriter, r *http.Request) { s.deps.Page.ServeHTTP(w, r) }

// link responds with a new link to the page.
func (s *Server) link(w http.ResponseWriter, _ *http.Request) {
	text, err := json.Marshal(map[string]string{"path": s.deps.Sessions.Link()})
	if err != nil {
		fail(w, http.StatusInternalServerError, err.Error())
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	s.write(w, text)
}

// enter returns the request inside a session that r is, nil if it has been responded to.
func (a *auth) enter(w http.ResponseWriter, r *http.Request) *http.Request {
	path, ok := a.sessions.Enter(w, r)
	if !ok {
		return nil
	}
	inside, address := r.WithContext(r.Context()), *r.URL
	address.Path, address.RawPath = path, ""
	inside.URL = &address
	return inside
}
