package page

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// visitor is a browser.
type visitor struct {
	t      *testing.T
	access *Access
}

// logIn follows a link and returns the path and cookie of the session, if it works.
func (v visitor) logIn(link string) (path string, cookie *http.Cookie) {
	v.t.Helper()
	w := httptest.NewRecorder()
	if _, ok := v.access.Enter(w, httptest.NewRequest("GET", link, nil)); ok {
		v.t.Fatal("a link is no session")
	}
	if w.Code != http.StatusOK {
		return "", nil
	}
	_, path, _ = strings.Cut(w.Header().Get("Refresh"), "url=")
	return path, w.Result().Cookies()[0]
}

func (v visitor) enters(path string, cookie *http.Cookie) bool {
	v.t.Helper()
	r := httptest.NewRequest("GET", path, nil)
	r.AddCookie(cookie)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	inside, ok := v.access.Enter(httptest.NewRecorder(), r)
	if ok && (inside != "/ui/" || r.Header.Get("Cookie") != "") {
		v.t.Errorf("entered %s with cookie %q", inside, r.Header.Get("Cookie"))
	}
	return ok
}

func TestLinksAndSessionsExpire(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(1_800_000_000, 0))
	v := visitor{t, NewAccess(clock)}
	pass := func(d time.Duration) { clock.SetTime(clock.Now().Add(d)) }
	old, link := v.access.Link(), v.access.Link()
	pass(linkLife - time.Second)
	path, cookie := v.logIn(link)
	if !v.enters(path, cookie) {
		t.Error("a link does not work in its last second")
	}
	pass(time.Second)
	if path, _ := v.logIn(old); path != "" {
		t.Error("an old link works")
	}
	pass(sessionLife - 2*time.Second)
	if !v.enters(path, cookie) {
		t.Error("a session has ended early")
	}
	pass(sessionLife - time.Second)
	if !v.enters(path, cookie) {
		t.Error("a session has ended although it was used")
	}
	pass(sessionLife)
	if v.enters(path, cookie) {
		t.Error("a session that was not used has not ended")
	}
}

func TestLinksAndSessionsAreBounded(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(1_800_000_000, 0))
	v := visitor{t, NewAccess(clock)}
	links := []string{}
	for range maxLinks + 1 {
		links = append(links, v.access.Link())
	}
	if path, _ := v.logIn(links[0]); path != "" {
		t.Error("the oldest of too many links works")
	}
	first, firstCookie := v.logIn(links[1])
	second, secondCookie := v.logIn(links[2])
	for range maxSessions - 1 {
		clock.SetTime(clock.Now().Add(time.Second))
		if !v.enters(second, secondCookie) {
			t.Fatal("a session that is used was dropped")
		}
		v.logIn(v.access.Link())
	}
	if v.enters(first, firstCookie) {
		t.Error("the session that was used least recently is one too many")
	}
	if got := len(v.access.sessions); got != maxSessions {
		t.Errorf("%d sessions, want %d", got, maxSessions)
	}
}
