package page

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// loginPath is that of a link, to which ?token= is added.
	loginPath = "/ui/login"
	// sessionPrefix is the beginning of the paths of all sessions. The session's key follows.
	sessionPrefix = "/page/"
	cookieName    = "swiftlet-page"

	// maxLinks and maxSessions are kept. The oldest link and the session that was used least recently are dropped.
	maxLinks, maxSessions = 8, 16
	// linkLife is how long a link that was not used is valid, sessionLife how long a session that is not used.
	linkLife, sessionLife = time.Hour, 12 * time.Hour
	// maxCookies of a request are looked at. A browser sends one.
	maxCookies = 4
	// wrongTokens are answered as such in a wrongPeriod.
	wrongTokens, wrongPeriod = 10, time.Minute
)

// Access lets people in who have a link: its token works once and is exchanged for a session. A session is a cookie
// and a key. The key is part of all paths of the session and of the cookie's path, because browsers send cookies to
// all ports of a host, also to those of pods. Links and sessions are in memory and end with the process; both are
// kept as hashes.
type Access struct {
	clock clock.PassiveClock
	// insecure is set for servers without TLS.
	insecure bool

	mu       sync.Mutex
	links    []link    // oldest first
	sessions []session // in any order
	wrong    []time.Time
}

type secret [sha256.Size]byte

type link struct {
	token   secret
	expires time.Time
}

type session struct {
	key    string
	cookie secret
	used   time.Time
}

// NewAccess has no links and no sessions.
func NewAccess(clock clock.PassiveClock) *Access { return &Access{clock: clock} }

// NewInsecureAccess is NewAccess for a server without TLS.
func NewInsecureAccess(clock clock.PassiveClock) *Access {
	return &Access{clock: clock, insecure: true}
}

// Link returns the path and query of a new link.
func (a *Access) Link() string {
	token := newSecret()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.links = append(a.links, link{sha256.Sum256([]byte(token)), a.clock.Now().Add(linkLife)})
	if excess := len(a.links) - maxLinks; excess > 0 {
		a.links = slices.Delete(a.links, 0, excess)
	}
	return loginPath + "?token=" + token
}

// Claims reports whether a request is for a link or a session.
func (a *Access) Claims(r *http.Request) bool {
	return r.URL.Path == loginPath || strings.HasPrefix(r.URL.Path, sessionPrefix)
}

// Enter returns the path that the request of a session asks for: what is behind the session's prefix. It removes the
// cookie. ok is false if it has responded itself: to a link, and to a request that is not one of a session.
func (a *Access) Enter(w http.ResponseWriter, r *http.Request) (path string, ok bool) {
	restrict(w.Header())
	if r.URL.Path == loginPath {
		a.login(w, r)
		return "", false
	}
	key, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, sessionPrefix), "/")
	first, _, _ := strings.Cut(rest, "/")
	cookies := r.CookiesNamed(cookieName)
	r.Header.Del("Cookie")
	switch {
	case !a.known(key, cookies):
		refuse(w, http.StatusUnauthorized, "This session has ended. Get a link to another one by \"swiftlet ui\".")
	case !ownOrigin(r, a.insecure):
		refuse(w, http.StatusForbidden, "a page of another origin may not use this session")
	case r.Method != http.MethodGet:
		w.Header().Set("Allow", http.MethodGet)
		refuse(w, http.StatusMethodNotAllowed, "405: Method Not Allowed")
	case !slices.Contains(served, first):
		refuse(w, http.StatusNotFound, "sessions have no such path")
	default:
		return "/" + rest, true
	}
	return "", false
}

// restrict has a browser take an answer for what its type says, and run nothing of it. The page has a policy of its own:
// it may run scripts of its origin, and the logs of pods, which have the same origin, must not pass for such.
func restrict(header http.Header) {
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// served are the first segments of the paths that sessions have: what the page uses.
var served = []string{"ui", "containerLogs", "exec"}

// login exchanges the token of a link for a session.
func (a *Access) login(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	if r.Method != http.MethodGet {
		header.Set("Allow", http.MethodGet)
		refuse(w, http.StatusMethodNotAllowed, "405: Method Not Allowed")
		return
	}
	key, cookie, known := a.exchange(r.URL.Query().Get("token"))
	if !known {
		if !a.mayFail() {
			header.Set("Retry-After", "60")
			refuse(w, http.StatusTooManyRequests, "too many wrong links")
			return
		}
		refuse(w, http.StatusForbidden, "This link was used, or is too old. Get another one by \"swiftlet ui\".")
		return
	}
	path := sessionPrefix + key + "/"
	http.SetCookie(w, &http.Cookie{
		Name: cookieName, Value: cookie, Path: path, HttpOnly: true, Secure: !a.insecure, SameSite: http.SameSiteStrictMode,
	})
	// Not a redirect: if a page of another site has the link, a browser would follow a redirect without the cookie.
	header.Set("Refresh", "0; url="+path+"ui/")
	header.Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, "<!doctype html><title>Swiftlet</title><a href=\""+path+"ui/\">Swiftlet</a>\n")
}

// exchange uses up the link with the token and makes a session. Comparisons take as long for any token.
func (a *Access) exchange(token string) (key, cookie string, known bool) {
	sum, now := sha256.Sum256([]byte(token)), a.clock.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	found := -1
	for i := range a.links {
		if subtle.ConstantTimeCompare(a.links[i].token[:], sum[:]) == 1 && now.Before(a.links[i].expires) {
			found = i
		}
	}
	if found < 0 {
		return "", "", false
	}
	a.links = slices.Delete(a.links, found, found+1)
	if len(a.sessions) >= maxSessions {
		oldest := slices.MinFunc(a.sessions, func(s, t session) int { return cmp.Or(s.used.Compare(t.used), cmp.Compare(s.key, t.key)) })
		a.sessions = slices.DeleteFunc(a.sessions, func(s session) bool { return s.key == oldest.key })
	}
	key, cookie = newSecret(), newSecret()
	a.sessions = append(a.sessions, session{key, sha256.Sum256([]byte(cookie)), now})
	return key, cookie, true
}

// mayFail reports whether a wrong token is answered as such, and counts it. It does not keep a right one out.
func (a *Access) mayFail() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.clock.Now()
	a.wrong = slices.DeleteFunc(a.wrong, func(at time.Time) bool { return now.Sub(at) >= wrongPeriod })
	if len(a.wrong) >= wrongTokens {
		return false
	}
	a.wrong = append(a.wrong, now)
	return true
}

// known reports whether the request has the key and a cookie of the same session.
func (a *Access) known(key string, cookies []*http.Cookie) bool {
	now := a.clock.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sessions = slices.DeleteFunc(a.sessions, func(s session) bool { return now.Sub(s.used) >= sessionLife })
	valid := false
	for _, c := range cookies[:min(len(cookies), maxCookies)] {
		sum := sha256.Sum256([]byte(c.Value))
		for i := range a.sessions {
			s := &a.sessions[i]
			if subtle.ConstantTimeCompare([]byte(s.key), []byte(key))&subtle.ConstantTimeCompare(s.cookie[:], sum[:]) == 1 {
				s.used, valid = now, true
			}
		}
	}
	return valid
}

// ownOrigin reports whether the request comes from a page of this server, or from the address bar. Browsers say so
// with one of two headers, which pages cannot set; a request without either is refused.
func ownOrigin(r *http.Request, insecure bool) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	if origins := r.Header["Origin"]; len(origins) > 0 {
		scheme := "https://"
		if insecure {
			scheme = "http://"
		}
		return len(origins) == 1 && strings.EqualFold(origins[0], scheme+r.Host) && (site == "" || site == "same-origin")
	}
	typed := site == "none" && r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Upgrade") == ""
	return site == "same-origin" || typed
}

// newSecret returns 256 random bits for a URL.
func newSecret() string {
	var bits [32]byte
	_, _ = rand.Read(bits[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(bits[:])
}
