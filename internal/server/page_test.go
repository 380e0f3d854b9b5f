package server

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/utils/clock"

	"swiftlet/internal/page"
	"swiftlet/internal/page/assets"
	"swiftlet/internal/stats"
	"swiftlet/internal/why"
)

// emptyNode is a node without pods.
type emptyNode struct{ noStatuses }

func (emptyNode) List() []*v1.Pod               { return nil }
func (emptyNode) SubscribePods(func(types.UID)) {}
func (emptyNode) Counters() stats.Counters      { return stats.Counters{} }
func (emptyNode) UsageSummary(context.Context) (*statsapi.Summary, error) {
	return &statsapi.Summary{}, nil
}

// emptyPods lists no pods.
type emptyPods struct{ emptyNode }

func (emptyPods) Get(types.UID) (*v1.Pod, bool) { return nil, false }

// emptyPage is the page of a node without pods.
func emptyPage(d Deps) http.Handler {
	p, err := page.New(page.Deps{
		Pods: emptyPods{}, Statuses: emptyNode{}, Usage: emptyNode{}, Open: assets.Open, Clock: clock.RealClock{}, Log: d.Log,
		Why:  WhyView{Steps: why.New(), Statuses: noStatuses{}, Object: func() *v1.Node { return &v1.Node{} }, Clock: d.Clock},
		Node: func() *v1.Node { return &v1.Node{} }, Events: func() []v1.Event { return nil },
	})
	if err != nil {
		panic(err)
	}
	return p
}

// startWithLinks starts a server that lets people in by links.
func startWithLinks(t *testing.T) (*node, *page.Access) {
	access := page.NewAccess(clock.RealClock{})
	return start(t, false, func(c *Config, d *Deps) {
		enableAll(c, d)
		d.Sessions = access
	}), access
}

// visit requests a path with headers and without a credential.
func (n *node) visit(method, path string, header http.Header) *http.Response {
	n.t.Helper()
	r, err := http.NewRequest(method, "https://"+n.ports["10250"]+path, nil)
	if err != nil {
		n.t.Fatal(err)
	}
	maps.Copy(r.Header, header)
	client := n.client(credential{})
	defer client.CloseIdleConnections()
	response, err := client.Do(r)
	if err != nil {
		n.t.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		n.t.Fatal(err)
	}
	return response
}

// logIn follows a link and returns the prefix and the cookie of the session.
func (n *node) logIn(link string) (prefix, cookie string) {
	n.t.Helper()
	response := n.visit("GET", link, nil)
	_, target, found := strings.Cut(response.Header.Get("Refresh"), "url=")
	if response.StatusCode != 200 || !found || len(response.Cookies()) != 1 {
		n.t.Fatalf("log in: %d %v", response.StatusCode, response.Header)
	}
	c := response.Cookies()[0]
	prefix = strings.TrimSuffix(target, "/ui/")
	if c.Path != prefix+"/" || !c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteStrictMode || c.Domain != "" {
		n.t.Errorf("cookie is %s", c)
	}
	return prefix, c.Name + "=" + c.Value
}

// TestSession requests paths in a session as a browser does, and as pages of other origins, pods and strangers may.
func TestSession(t *testing.T) {
	n, access := startWithLinks(t)
	prefix, cookie := n.logIn(access.Link())
	other, _ := n.logIn(access.Link())
	origin := "https://" + n.ports["10250"]
	headers := func(pairs ...string) http.Header {
		h := http.Header{}
		for i := 0; i < len(pairs); i += 2 {
			h.Add(pairs[i], pairs[i+1])
		}
		return h
	}
	own := headers("Cookie", cookie, "Sec-Fetch-Site", "same-origin")
	for name, c := range map[string]struct {
		method, path string
		header       http.Header
		code         int
	}{
		"the page":                         {"GET", prefix + "/ui/", own, 200},
		"the page by the address bar":      {"GET", prefix + "/ui/", headers("Cookie", cookie, "Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate"), 200},
		"history":                          {"GET", prefix + "/ui/api/history", own, 200},
		"history with its origin":          {"GET", prefix + "/ui/api/history", headers("Cookie", cookie, "Origin", origin), 200},
		"log of no pod":                    {"GET", prefix + "/containerLogs/none/none/none", own, 404},
		"no slash":                         {"GET", prefix + "/ui", own, 200},
		"two cookies, one of them valid":   {"GET", prefix + "/ui/", headers("Cookie", "swiftlet-page=x; "+cookie, "Sec-Fetch-Site", "same-origin"), 200},
		"no cookie":                        {"GET", prefix + "/ui/", headers("Sec-Fetch-Site", "same-origin"), 401},
		"other cookie":                     {"GET", prefix + "/ui/", headers("Cookie", "swiftlet-page=x", "Sec-Fetch-Site", "same-origin"), 401},
		"key of another session":           {"GET", other + "/ui/", own, 401},
		"no key":                           {"GET", "/page//ui/", own, 401},
		"cookie outside of its path":       {"GET", "/ui/", own, 401},
		"cookie for another route":         {"GET", "/pods", own, 401},
		"cookie as bearer token":           {"GET", "/pods", headers("Authorization", "Bearer "+strings.TrimPrefix(cookie, "swiftlet-page=")), 401},
		"page of another site":             {"GET", prefix + "/ui/api/history", headers("Cookie", cookie, "Sec-Fetch-Site", "cross-site"), 403},
		"page of another port":             {"GET", prefix + "/ui/api/history", headers("Cookie", cookie, "Sec-Fetch-Site", "same-site"), 403},
		"link of another site":             {"GET", prefix + "/ui/", headers("Cookie", cookie, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"), 403},
		"image of the address bar":         {"GET", prefix + "/ui/", headers("Cookie", cookie, "Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "no-cors"), 403},
		"old browser without both headers": {"GET", prefix + "/ui/", headers("Cookie", cookie), 403},
		"other origin":                     {"GET", prefix + "/ui/api/history", headers("Cookie", cookie, "Origin", "https://evil.example"), 403},
		"other origin, forwarded":          {"GET", prefix + "/ui/api/history", headers("Cookie", cookie, "Origin", "https://evil.example", "X-Forwarded-For", "10.0.0.1"), 403},
		"origin without TLS":               {"GET", prefix + "/ui/api/history", headers("Cookie", cookie, "Origin", "http://"+n.ports["10250"]), 403},
		"two origins":                      {"GET", prefix + "/ui/api/history", headers("Cookie", cookie, "Origin", origin, "Origin", "https://evil.example"), 403},
		"opaque origin":                    {"GET", prefix + "/ui/api/history", headers("Cookie", cookie, "Origin", "null", "Sec-Fetch-Site", "same-origin"), 403},
		"a form":                           {"POST", prefix + "/exec/ns/web/main?output=1", headers("Cookie", cookie, "Origin", origin, "Sec-Fetch-Site", "same-origin"), 405},
		"a new link":                       {"POST", prefix + "/ui/link", own, 405},
		"a route that the page needs not":  {"GET", prefix + "/pods", own, 404},
		"run":                              {"GET", prefix + "/run/ns/web/main", own, 404},
		"attach":                           {"GET", prefix + "/attach/ns/web/main", own, 404},
		"dots out of the session":          {"GET", prefix + "/ui/..%2fpods", own, 401}, // redirected to /pods
		"link by a stranger":               {"POST", "/ui/link", nil, 401},
	} {
		got := n.visit(c.method, c.path, c.header)
		if got.StatusCode != c.code {
			t.Errorf("%s: %s %s: %d, want %d", name, c.method, c.path, got.StatusCode, c.code)
		}
		if strings.HasPrefix(got.Request.URL.Path, "/page/") {
			checkPolicy(t, name, got.Header)
		}
	}
	for name, c := range map[string]struct {
		header http.Header
		denied bool
	}{
		"own page":      {headers("Cookie", cookie, "Origin", origin), false},
		"foreign page":  {headers("Cookie", cookie, "Origin", "https://evil.example"), true},
		"pod's page":    {headers("Cookie", cookie, "Origin", "http://127.0.0.1:8080"), true},
		"without page":  {headers("Cookie", cookie), true},
		"address bar":   {headers("Cookie", cookie, "Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate"), true},
		"without login": {headers("Origin", origin), true},
	} {
		code, body := n.webSocket(n.client(credential{}), prefix+"/exec/none/none/none?output=1", credential{}, c.header)
		if denied := code == 403 || code == 401; denied != c.denied || !denied && code != 404 {
			t.Errorf("terminal by %s: %d %s, want denied %t", name, code, body, c.denied)
		}
	}
}

// checkPolicy checks what keeps a browser from running an answer as a script of the session's origin.
func checkPolicy(t *testing.T, name string, header http.Header) {
	t.Helper()
	if header.Get("X-Content-Type-Options") != "nosniff" || header.Get("Referrer-Policy") != "no-referrer" ||
		!strings.HasPrefix(header.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("%s: headers are %v", name, header)
	}
}

// TestSessionShowsLogAsText: the log of a pod is no script of the page.
func TestSessionShowsLogAsText(t *testing.T) {
	n, access := startWithLinks(t)
	prefix, cookie := n.logIn(access.Link())
	got := n.visit("GET", prefix+"/containerLogs/ns/web/main", http.Header{"Cookie": {cookie}, "Sec-Fetch-Site": {"same-origin"}})
	if got.StatusCode != 200 || got.Header.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Fatalf("log: %d %v", got.StatusCode, got.Header)
	}
	checkPolicy(t, "log", got.Header)
}

// TestLinkWorksOnce: a link may be in a history or over a shoulder.
func TestLinkWorksOnce(t *testing.T) {
	n, access := startWithLinks(t)
	link := access.Link()
	n.logIn(link)
	if code := n.visit("GET", link, nil).StatusCode; code != 403 {
		t.Errorf("second time: %d, want 403", code)
	}
	last := 0
	for range 20 {
		last = n.visit("GET", "/ui/login?token=x", nil).StatusCode
	}
	if last != 429 {
		t.Errorf("20 wrong links: %d, want 429", last)
	}
	n.logIn(access.Link()) // a stranger does not keep the owner out
}

// TestLinkForAdministrator: `swiftlet ui` asks for a link with the administrator's certificate.
func TestLinkForAdministrator(t *testing.T) {
	n, _ := startWithLinks(t)
	master := n.ca.issue(t, "root", []string{"system:masters"}, nil)
	code, body, _ := n.get("POST", "/ui/link", credential{cert: &master})
	var link struct{ Path string }
	if err := json.Unmarshal([]byte(body), &link); err != nil || code != 200 {
		t.Fatalf("%d, %v: %s", code, err, body)
	}
	if _, err := url.ParseRequestURI(link.Path); err != nil {
		t.Error(err)
	}
	n.logIn(link.Path)
}

// TestNoLinksWithoutSessions: in a cluster no link lets anyone in.
func TestNoLinksWithoutSessions(t *testing.T) {
	n := start(t, true, enableAll)
	for _, path := range []string{page.NewAccess(clock.RealClock{}).Link(), "/page/x/ui/"} {
		if code := n.visit("GET", path, nil).StatusCode; code != 401 {
			t.Errorf("%s: %d, want 401", path, code)
		}
	}
}
