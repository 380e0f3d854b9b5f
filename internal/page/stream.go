package page

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/notify"
)

const (
	// maxStreams is how many pages may be open.
	maxStreams = 32
	// pingInterval keeps connections open that carry nothing else.
	pingInterval = 20 * time.Second
	// writeTimeout is how long a browser may read nothing of an update. It then connects again.
	writeTimeout = 10 * time.Second
)

// stream is the connection to one page. It has what is due, not what is sent: a page that reads slowly gets the latest
// of each pod, and a stream never takes more memory than the list of pods. Page.mu guards its fields.
type stream struct {
	// begun: the complete list of pods is due or was sent. Nothing is sent before.
	begun, list, node, sample, podSample, detail bool
	pods, usage                                  map[types.UID]bool
	wake                                         notify.Signal

	// namespace and name are those of the pod whose page is open, if one is.
	namespace, name string
	touched         bool   // that pod may have changed
	sent            uint64 // of the last detail; used only by the stream's handler
	seed            maphash.Seed
}

// begin makes everything due. It is called with the lock held.
func (s *stream) begin() {
	s.begun, s.list, s.node, s.sample, s.detail = true, true, true, true, s.name != ""
	clear(s.pods)
	clear(s.usage)
	s.wake.Notify()
}

// touch notes that a pod may have changed. It is called with the lock held.
func (s *stream) touch(r *PodRow) {
	if s.name != "" && s.name == r.Name && s.namespace == r.Namespace {
		s.touched = true
	}
}

// offerDetail makes the pod of the page due, if it may have changed or in any case. It is called with the lock held.
func (s *stream) offerDetail(anyway bool) {
	if s.name != "" && (s.touched || anyway) {
		s.detail, s.touched = true, false
		s.wake.Notify()
	}
}

var errTooManyPages = errors.New("too many pages are open")

func (p *Page) addStream(namespace, name string) (*stream, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.streams) >= maxStreams {
		return nil, errTooManyPages
	}
	s := &stream{
		pods: map[types.UID]bool{}, usage: map[types.UID]bool{}, wake: notify.New(),
		namespace: namespace, name: name, seed: maphash.MakeSeed(),
	}
	p.streams[s] = true
	if p.begun { // else Run begins it
		s.begin()
	}
	p.opened.Notify()
	return s, nil
}

func (p *Page) removeStream(s *stream) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.streams, s)
}

// serveStream sends what changes until the page is closed.
func (p *Page) serveStream(w http.ResponseWriter, r *http.Request) {
	namespace, name, found := strings.Cut(r.URL.Query().Get("pod"), "/")
	if !found && namespace != "" {
		refuse(w, http.StatusBadRequest, "pod is not NAMESPACE/NAME")
		return
	}
	s, err := p.addStream(namespace, name)
	if err != nil {
		w.Header().Set("Retry-After", "10")
		refuse(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	defer p.removeStream(s)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	ping := p.deps.Clock.NewTicker(pingInterval)
	defer ping.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-ping.C():
			err = p.send(w, []byte(": ping\n\n"))
		case <-s.wake:
			text, detail := p.due(s)
			if detail {
				text = p.appendDetail(text, s)
			}
			if len(text) == 0 {
				continue
			}
			err = p.send(w, text)
		}
		if err != nil {
			return
		}
	}
}

func (p *Page) send(w http.ResponseWriter, text []byte) error {
	control := http.NewResponseController(w)
	if err := control.SetWriteDeadline(p.deps.Clock.Now().Add(writeTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("send to page: %w", err)
	}
	if _, err := w.Write(text); err != nil {
		return fmt.Errorf("send to page: %w", err)
	}
	if err := control.Flush(); err != nil {
		return fmt.Errorf("send to page: %w", err)
	}
	_ = control.SetWriteDeadline(time.Time{}) // HTTP/2 ends a stream at its deadline, also if nothing is written
	return nil
}

// due takes all that is due. detail: the pod of the page is due, too.
func (p *Page) due(s *stream) (text []byte, detail bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !s.begun {
		return nil, false
	}
	if s.list {
		s.list = false
		text = appendEvent(text, "pods", p.listText())
		clear(s.pods)
		clear(s.usage)
	}
	for uid := range s.pods {
		if r := p.rows[uid]; r != nil {
			text = appendEvent(text, "pod", r.text)
		} else {
			text = appendEvent(text, "gone", encode(map[string]types.UID{"uid": uid}))
		}
	}
	clear(s.pods)
	if len(s.usage) > 0 {
		text = appendEvent(text, "usage", p.usageText(s))
		clear(s.usage)
	}
	if s.node && p.node != nil {
		s.node = false
		text = appendEvent(text, "node", p.node)
	}
	if s.sample {
		s.sample = false
		text = appendEvent(text, "sample", encode(p.samples.newest(p.deps.Clock.Now())))
	}
	if s.podSample {
		s.podSample = false
		if s.name != "" {
			text = p.appendPodSample(text, s)
		}
	}
	detail, s.detail = s.detail, false
	return text, detail
}

// listText is the complete list of pods.
func (p *Page) listText() []byte {
	var list bytes.Buffer
	list.WriteByte('[')
	first := true
	for _, r := range p.rows {
		if !first {
			list.WriteByte(',')
		}
		first = false
		list.Write(r.text)
	}
	list.WriteByte(']')
	return list.Bytes()
}

func (p *Page) usageText(s *stream) []byte {
	values := make(map[types.UID][2]any, len(s.usage))
	for uid := range s.usage {
		use := p.usage.use(uid)
		values[uid] = [2]any{use.cpu, use.memory}
	}
	return encode(values)
}

func (p *Page) appendPodSample(text []byte, s *stream) []byte {
	for uid, r := range p.rows {
		if r.view.Namespace == s.namespace && r.view.Name == s.name {
			return appendEvent(text, "containers", encode(p.usage.newest(uid, p.axis, p.deps.Clock.Now())))
		}
	}
	return text
}

// appendDetail describes the pod of the page, if it has changed.
func (p *Page) appendDetail(text []byte, s *stream) []byte {
	detail := p.detail(s.namespace, s.name)
	sum := s.sum(detail)
	if sum == s.sent {
		return text
	}
	s.sent = sum
	return appendEvent(text, "detail", encode(detail))
}

// sum is a hash of the detail without the time at which it was made.
func (s *stream) sum(detail *PodDetail) uint64 {
	if detail == nil {
		return maphash.String(s.seed, "gone")
	}
	timeless := *detail
	if timeless.Report != nil {
		report := *timeless.Report
		report.At = time.Time{}
		timeless.Report = &report
	}
	return maphash.Bytes(s.seed, encode(&timeless))
}

func appendEvent(text []byte, name string, data []byte) []byte {
	text = append(text, "event: "+name+"\ndata: "...)
	text = append(text, data...)
	return append(text, "\n\n"...)
}

// encode is for values that can always be encoded.
func encode(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		return []byte("null")
	}
	return text
}

// refuse responds with an error as plain text.
func refuse(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, text+"\n") // it fails only when the client has disconnected
}
