package standalone

import "fmt"

// PageURL is the address of a path on the kubelet's port.
func PageURL(port int, path string) string { return fmt.Sprintf("https://127.0.0.1:%d%s", port, path) }

// showLink prints a link to the page on a terminal. Elsewhere its token would be in a log.
func (s *Supervisor) showLink() {
	switch {
	case !s.cfg.Page || s.deps.Link == nil:
	case s.deps.Rows == nil:
		s.progress("`swiftlet ui` prints a link to the page of this node")
	default:
		s.progress("the page of this node: %s", PageURL(s.cfg.Port, s.deps.Link()))
		s.progress("the link works once, within an hour; `swiftlet ui` prints another one. The browser warns of the certificate, which is from the node's own CA")
	}
}
