package server

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// Check is a named health check.
type Check struct {
	Name string
	// Check returns an error if the check fails. /healthz logs the error and withholds it from
	// clients.
	Check func(*http.Request) error
}

func alwaysHealthy(*http.Request) error { return nil }

var (
	ping     = Check{"ping", alwaysHealthy}
	logCheck = Check{"log", alwaysHealthy} // log lines are not buffered, so it cannot fail
)

// healthRoutes are /healthz and one path below it for each check.
func (s *Server) healthRoutes(checks []Check) []route {
	all := func(w http.ResponseWriter, r *http.Request) { s.writeHealth(w, r, checks) }
	routes := []route{{"/healthz", nil, "healthz proxy", readOnlyPort, always, all}}
	for _, check := range checks {
		one := func(w http.ResponseWriter, r *http.Request) {
			if err := check.Check(r); err != nil {
				http.Error(w, fmt.Sprintf("internal server error: %v", err), http.StatusInternalServerError)
				return
			}
			fmt.Fprint(w, "ok")
		}
		routes = append(routes, route{"/healthz/" + check.Name, nil, "healthz proxy", readOnlyPort, always, one})
	}
	return routes
}

// writeHealth runs all checks that ?exclude= does not name. It lists the results if one failed,
// or with ?verbose.
func (s *Server) writeHealth(w http.ResponseWriter, r *http.Request, checks []Check) {
	excluded := map[string]bool{}
	for _, name := range r.URL.Query()["exclude"] {
		excluded[name] = true
	}
	var list strings.Builder
	failed := false
	for _, check := range checks {
		if excluded[check.Name] {
			delete(excluded, check.Name)
			fmt.Fprintf(&list, "[+]%s excluded: ok\n", check.Name)
			continue
		}
		err := check.Check(r)
		s.deps.SLIs.Checked(check.Name, "healthz", err)
		if err != nil {
			failed = true
			s.deps.Log.Warn("healthz: check failed", "check", check.Name, "err", err)
			fmt.Fprintf(&list, "[-]%s failed: reason withheld\n", check.Name)
		} else {
			fmt.Fprintf(&list, "[+]%s ok\n", check.Name)
		}
	}
	if len(excluded) > 0 {
		fmt.Fprintf(&list, "warn: some health checks cannot be excluded: no matches for %q\n", slices.Sorted(maps.Keys(excluded)))
	}
	if failed {
		http.Error(w, list.String()+"healthz check failed", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if r.URL.Query().Has("verbose") {
		fmt.Fprintf(w, "%shealthz check passed\n", list.String())
		return
	}
	fmt.Fprint(w, "ok")
}
