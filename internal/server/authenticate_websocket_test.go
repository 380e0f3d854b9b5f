package server

import (
	"encoding/base64"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestBearerTokenSubprotocol(t *testing.T) {
	n := start(t, true, nil)
	encode := func(token string) string {
		return bearerProtocolPrefix + base64.RawURLEncoding.EncodeToString([]byte(token))
	}
	good, channel := encode("good"), "v5.channel.k8s.io"
	for name, c := range map[string]struct {
		protocols []string // one for each header
		plain     bool     // not a WebSocket request
		bearer    string   // token in the Authorization header
		user, err string
		left      string // subprotocols that remain
	}{
		"valid token":                             {protocols: []string{good + ", " + channel}, user: "reader", left: channel},
		"token after other protocols":             {protocols: []string{"v4.channel.k8s.io," + channel + "," + good}, user: "reader", left: "v4.channel.k8s.io," + channel},
		"token in a second header":                {protocols: []string{channel, good}, user: "reader", left: channel},
		"invalid token":                           {protocols: []string{encode("bad"), channel}, err: errInvalidToken.Error()},
		"no token":                                {protocols: []string{channel}, err: errNoCredential.Error()},
		"empty token":                             {protocols: []string{bearerProtocolPrefix, channel}, err: errNoCredential.Error()},
		"token without other protocol":            {protocols: []string{good}, err: "no other subprotocol"},
		"two tokens":                              {protocols: []string{good, good, channel}, err: "more than one"},
		"token not base64":                        {protocols: []string{bearerProtocolPrefix + "=", channel}, err: "malformed"},
		"token not UTF-8":                         {protocols: []string{encode("\xff"), channel}, err: "malformed"},
		"not a WebSocket request":                 {protocols: []string{good, channel}, plain: true, err: errNoCredential.Error()},
		"valid Authorization header wins":         {protocols: []string{encode("bad"), channel}, bearer: "good", user: "reader", left: encode("bad") + "," + channel},
		"invalid Authorization header is ignored": {protocols: []string{good, channel}, bearer: "bad", user: "reader", left: channel},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest("GET", "/exec/ns/p/c", nil)
			if !c.plain {
				r.Header.Set("Connection", "Upgrade")
				r.Header.Set("Upgrade", "websocket")
			}
			for _, p := range c.protocols {
				r.Header.Add("Sec-WebSocket-Protocol", p)
			}
			if c.bearer != "" {
				r.Header.Set("Authorization", "Bearer "+c.bearer)
			}
			u, err := n.server.auth.authenticate(r)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("user %+v, error %v, want error %q", u, err, c.err)
				}
				return
			}
			if left := strings.Join(r.Header.Values("Sec-WebSocket-Protocol"), ","); err != nil || u.name != c.user || left != c.left {
				t.Errorf("user %q (%v), protocols %q, want %q and %q", u.name, err, left, c.user, c.left)
			}
		})
	}
}

// FuzzSplitProtocols: no token remains in the subprotocols that handlers see, and a well-formed
// header is split into what it was joined from.
func FuzzSplitProtocols(f *testing.F) {
	f.Add("good", "v5.channel.k8s.io", bearerProtocolPrefix+"Z29vZA")
	f.Add("", "", bearerProtocolPrefix)
	f.Add("\xff", " a , b,,", bearerProtocolPrefix+"=,"+bearerProtocolPrefix)
	f.Fuzz(func(t *testing.T, token, others, arbitrary string) {
		_, left, err := splitProtocols([]string{arbitrary, others})
		if err != nil && left != nil {
			t.Fatalf("splitProtocols(%q, %q) = %q and %v", arbitrary, others, left, err)
		}
		for _, protocol := range left {
			if protocol == "" || strings.HasPrefix(protocol, bearerProtocolPrefix) || strings.Contains(protocol, ",") {
				t.Fatalf("splitProtocols(%q, %q) leaves %q", arbitrary, others, protocol)
			}
		}
		if !utf8.ValidString(token) || strings.Contains(others, bearerProtocolPrefix) {
			return
		}
		_, want, _ := splitProtocols([]string{others})
		got, left, err := splitProtocols([]string{others, bearerProtocolPrefix + base64.RawURLEncoding.EncodeToString([]byte(token))})
		if err != nil || got != token || !slices.Equal(left, want) {
			t.Fatalf("splitProtocols(%q, token %q) = %q, %q, %v", others, token, got, left, err)
		}
	})
}
