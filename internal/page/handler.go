package page

import (
	"encoding/json"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// policy lets the page load nothing but its own files, connect to nothing but its own server, and be framed by nothing.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; font-src 'self'; " +
	"frame-ancestors 'none'; base-uri 'none'; form-action 'self'"

// ServeHTTP serves the page below /ui/. The caller has authorized the request.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cache-Control", "no-store")
	if !fromHere(r) {
		refuse(w, http.StatusForbidden, "a page of another origin may not use this one")
		return
	}
	p.mux.ServeHTTP(w, r)
}

// fromHere refuses requests that a page of another origin makes. The caller authenticates them, but pages that come
// through kubectl proxy have no other guard.
func fromHere(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin":
		return true
	case "none":
		return true // the user has typed the address
	}
	// A link of another page may lead here, but nothing else.
	return r.Header.Get("Sec-Fetch-Mode") == "navigate" && !strings.HasPrefix(r.URL.Path, "/ui/api/")
}

func (p *Page) routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ui", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "ui/") // below whatever prefix
		w.WriteHeader(http.StatusFound)
	})
	mux.HandleFunc("GET /ui/{$}", func(w http.ResponseWriter, r *http.Request) { p.serveFile(w, r, "index.html") })
	mux.HandleFunc("GET /ui/assets/{name}", func(w http.ResponseWriter, r *http.Request) { p.serveFile(w, r, "assets/"+r.PathValue("name")) })
	mux.HandleFunc("GET /ui/api/stream", p.serveStream)
	mux.HandleFunc("GET /ui/api/history", p.serveHistory)
	mux.HandleFunc("GET /ui/api/pods/{namespace}/{pod}", p.servePod)
	return mux
}

func (p *Page) serveFile(w http.ResponseWriter, r *http.Request, name string) {
	file, found := p.deps.Open(name)
	if !found {
		refuse(w, http.StatusNotFound, "no such file")
		return
	}
	header := w.Header()
	if name != "index.html" { // its name has a hash of its content
		header.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	header.Set("Vary", "Accept-Encoding")
	content := file.Gzip
	if acceptsGzip(r) {
		header.Set("Content-Encoding", "gzip")
	} else {
		var err error
		if content, err = file.Plain(); err != nil {
			p.deps.Log.Error("serve file of page: failed", "name", name, "err", err)
			refuse(w, http.StatusInternalServerError, "the file cannot be read")
			return
		}
	}
	header.Set("Content-Type", file.Type)
	p.write(w, content)
}

// acceptsGzip: all browsers do, and send no quality 0.
func acceptsGzip(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept-Encoding"), "gzip")
}

func (p *Page) serveHistory(w http.ResponseWriter, _ *http.Request) {
	p.writeJSON(w, p.history())
}

func (p *Page) history() NodeHistory {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.samples.history(p.deps.Clock.Now())
}

func (p *Page) podHistory(uid types.UID) *PodHistory {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.usage.history(uid, p.axis, p.deps.Clock.Now())
}

func (p *Page) usageOf(uid types.UID) podUse {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.usage.use(uid)
}

func (p *Page) servePod(w http.ResponseWriter, r *http.Request) {
	detail := p.detail(r.PathValue("namespace"), r.PathValue("pod"))
	if detail == nil {
		refuse(w, http.StatusNotFound, "pod not found")
		return
	}
	detail.History = p.podHistory(detail.Row.UID)
	p.writeJSON(w, detail)
}

// detail describes the pod of that name, nil if there is none.
func (p *Page) detail(namespace, name string) *PodDetail {
	shown := p.find(namespace, name)
	if shown == nil {
		return nil
	}
	text, err := yamlOf(shown)
	if err != nil {
		p.deps.Log.Error("encode pod for page: failed", "err", err)
	}
	report := p.report(shown)
	row := newPodRow(shown, report, p.usageOf(shown.UID))
	return &PodDetail{Row: row, Report: report, YAML: text, Events: eventsOf(shown, p.deps.Events()), Containers: containerViews(shown)}
}

func (p *Page) writeJSON(w http.ResponseWriter, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		p.deps.Log.Error("encode response for page: failed", "err", err)
		refuse(w, http.StatusInternalServerError, "the response cannot be encoded")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	p.write(w, text)
}

func (p *Page) write(w http.ResponseWriter, text []byte) {
	if _, err := w.Write(text); err != nil {
		p.deps.Log.Debug("write response: failed", "err", err)
	}
}
