package server

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"swiftlet/internal/config"
)

const (
	component  = "kubelet"
	zPageGroup = "config.k8s.io"
)

// zPage is a page about the process: text for people, and an API object for clients that accept
// its group, version and kind.
type zPage struct {
	kind   string
	text   func() string
	object func(metav1.TypeMeta, metav1.ObjectMeta) any
}

// zPageVersions are the versions of the objects, which are equal; the older is deprecated.
var zPageVersions = []string{"v1beta1", "v1alpha1"}

func (s *Server) flagz(w http.ResponseWriter, r *http.Request) {
	zPage{
		kind: "Flagz",
		text: func() string {
			var b strings.Builder
			for _, name := range slices.Sorted(maps.Keys(s.cfg.Flags)) {
				fmt.Fprintf(&b, "%s: %s\n", name, s.cfg.Flags[name])
			}
			return b.String()
		},
		object: func(t metav1.TypeMeta, o metav1.ObjectMeta) any {
			return struct {
				metav1.TypeMeta   `json:""`
				metav1.ObjectMeta `json:"metadata"`
				Flags             map[string]string `json:"flags,omitempty"`
			}{t, o, s.cfg.Flags}
		},
	}.serve(w, r)
}

// statusz lists the paths of the API besides its own.
func (s *Server) statusz(w http.ResponseWriter, r *http.Request) {
	paths := rootPaths(slices.DeleteFunc(s.apiRoutes(), func(r route) bool { return r.path == "/statusz" }))
	version := strings.TrimPrefix(config.KubernetesVersion, "v")
	minor := version[:strings.LastIndex(version, ".")]
	up := func() time.Duration { return max(0, s.deps.Clock.Since(s.started)) }
	zPage{
		kind: "Statusz",
		text: func() string {
			t := up()
			return fmt.Sprintf("\nStarted: %s\nUp: %d hr %02d min %02d sec\nGo version: %s\nBinary version: %s\nEmulation version: %s\nSwiftlet version: %s\nPaths: %s\n",
				s.started.Format(time.UnixDate), int(t.Hours()), int(t.Minutes())%60, int(t.Seconds())%60,
				runtime.Version(), version, minor, s.cfg.Version, strings.Join(paths, " "))
		},
		object: func(t metav1.TypeMeta, o metav1.ObjectMeta) any {
			o.Annotations = map[string]string{config.VersionAnnotation: s.cfg.Version}
			return struct {
				metav1.TypeMeta   `json:""`
				metav1.ObjectMeta `json:"metadata"`
				StartTime         metav1.Time `json:"startTime"`
				UptimeSeconds     int64       `json:"uptimeSeconds"`
				GoVersion         string      `json:"goVersion"`
				BinaryVersion     string      `json:"binaryVersion"`
				EmulationVersion  string      `json:"emulationVersion,omitempty"`
				Paths             []string    `json:"paths"`
			}{t, o, metav1.NewTime(s.started), int64(up().Seconds()), runtime.Version(), version, minor, paths}
		},
	}.serve(w, r)
}

// rootPaths are the first segments of the routes' paths.
func rootPaths(routes []route) []string {
	var paths []string
	for _, r := range routes {
		paths = append(paths, "/"+firstSegment(r.path))
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

func (z zPage) serve(w http.ResponseWriter, r *http.Request) {
	for _, accepted := range parseAccept(r.Header.Get("Accept")) {
		switch kind, version := accepted.params["as"], accepted.params["v"]; {
		case kind == "" && slices.Contains([]string{"text/plain", "text/*", "*/*"}, accepted.media):
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			fmt.Fprintf(w, "\n%s %s\nWarning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.\n%s",
				component, strings.ToLower(z.kind), z.text())
			return
		case kind == z.kind && accepted.params["g"] == zPageGroup && slices.Contains(zPageVersions, version) &&
			slices.Contains([]string{"application/json", "application/yaml"}, accepted.media):
			z.writeObject(w, accepted.media, version)
			return
		}
	}
	notAcceptable(w)
}

func (z zPage) writeObject(w http.ResponseWriter, media, version string) {
	text, err := json.MarshalIndent(z.object(
		metav1.TypeMeta{Kind: z.kind, APIVersion: zPageGroup + "/" + version}, metav1.ObjectMeta{Name: component}), "", "  ")
	if err == nil && media == "application/yaml" {
		text, err = yaml.JSONToYAML(text)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if version != zPageVersions[0] {
		w.Header().Set("Warning", fmt.Sprintf(`299 - "This version of the %s endpoint is deprecated. Please use a newer version."`, strings.ToLower(z.kind)))
	}
	w.Header().Set("Content-Type", fmt.Sprintf("%s;g=%s;v=%s;as=%s", media, zPageGroup, version, z.kind))
	_, _ = w.Write(text) // it fails only when the client has disconnected
}

func notAcceptable(w http.ResponseWriter) {
	text, err := json.MarshalIndent(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure,
		Message:  "only the following media types are accepted: application/json, application/yaml, text/plain",
		Reason:   metav1.StatusReasonNotAcceptable,
		Code:     http.StatusNotAcceptable,
	}, "", "  ")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusNotAcceptable)
	_, _ = w.Write(text)
}

// mediaRange is an element of an Accept header.
type mediaRange struct {
	media  string
	params map[string]string
	weight float64
}

// parseAccept parses an Accept header, the preferred range first. An empty header accepts
// everything. Malformed elements are skipped.
func parseAccept(header string) []mediaRange {
	if strings.TrimSpace(header) == "" {
		return []mediaRange{{media: "*/*"}}
	}
	var ranges []mediaRange
	for part := range strings.SplitSeq(header, ",") {
		media, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		weight := 1.0
		if q, ok := params["q"]; ok {
			if weight, err = strconv.ParseFloat(q, 64); err != nil || !(weight > 0 && weight <= 1) {
				continue
			}
		}
		ranges = append(ranges, mediaRange{media, params, weight})
	}
	slices.SortStableFunc(ranges, func(a, b mediaRange) int { return cmp.Compare(b.weight, a.weight) })
	return ranges
}
