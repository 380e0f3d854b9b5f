package server

import (
	"encoding/base64"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTokensAmongSubprotocols(t *testing.T) {
	n := start(t, true, nil)
	hidden := func(token string) string { return tokenProtocol + base64.RawURLEncoding.EncodeToString([]byte(token)) }
	good, channel := hidden("good"), "v5.channel.k8s.io"
	for name, c := range map[string]struct {
		protocols []string // of each header
		plain     bool     // it is no WebSocket
		bearer    string   // in the usual header
		who, err  string
		left      string // of the subprotocols
	}{
		"a good one":                  {protocols: []string{good + ", " + channel}, who: "reader", left: channel},
		"after the others":            {protocols: []string{"v4.channel.k8s.io," + channel + "," + good}, who: "reader", left: "v4.channel.k8s.io," + channel},
		"in a header of its own":      {protocols: []string{channel, good}, who: "reader", left: channel},
		"a bad one":                   {protocols: []string{hidden("bad"), channel}, err: errInvalidToken.Error()},
		"none":                        {protocols: []string{channel}, err: errNoCredential.Error()},
		"an empty one":                {protocols: []string{tokenProtocol, channel}, err: errNoCredential.Error()},
		"nothing beside it":           {protocols: []string{good}, err: "beside it"},
		"two":                         {protocols: []string{good, good, channel}, err: "more than one"},
		"not base64":                  {protocols: []string{tokenProtocol + "=", channel}, err: "not well-formed"},
		"not text":                    {protocols: []string{hidden("\xff"), channel}, err: "not well-formed"},
		"not of a WebSocket":          {protocols: []string{good, channel}, plain: true, err: errNoCredential.Error()},
		"the usual header goes first": {protocols: []string{hidden("bad"), channel}, bearer: "good", who: "reader", left: hidden("bad") + "," + channel},
		"but only if it is good":      {protocols: []string{good, channel}, bearer: "bad", who: "reader", left: channel},
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
			who, err := n.server.guard.identify(r)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("it is %+v, %v; want %q", who, err, c.err)
				}
				return
			}
			if left := strings.Join(r.Header.Values("Sec-WebSocket-Protocol"), ","); err != nil || who.name != c.who || left != c.left {
				t.Errorf("it is %q (%v), left %q; want %q and %q", who.name, err, left, c.who, c.left)
			}
		})
	}
}

// FuzzSplitProtocols holds that whatever a client sends, no token stays among the
// subprotocols that handlers see, and that what is well-formed comes out as it went in.
func FuzzSplitProtocols(f *testing.F) {
	f.Add("good", "v5.channel.k8s.io", tokenProtocol+"Z29vZA")
	f.Add("", "", tokenProtocol)
	f.Add("\xff", " a , b,,", tokenProtocol+"=,"+tokenProtocol)
	f.Fuzz(func(t *testing.T, token, others, wild string) {
		_, left, err := splitProtocols([]string{wild, others})
		if err != nil && left != nil {
			t.Fatalf("splitProtocols(%q, %q) = %q and %v", wild, others, left, err)
		}
		for _, protocol := range left {
			if protocol == "" || strings.HasPrefix(protocol, tokenProtocol) || strings.Contains(protocol, ",") {
				t.Fatalf("splitProtocols(%q, %q) leaves %q", wild, others, protocol)
			}
		}
		if !utf8.ValidString(token) || strings.Contains(others, tokenProtocol) {
			return
		}
		_, want, _ := splitProtocols([]string{others})
		got, left, err := splitProtocols([]string{others, tokenProtocol + base64.RawURLEncoding.EncodeToString([]byte(token))})
		if err != nil || got != token || !slices.Equal(left, want) {
			t.Fatalf("splitProtocols(%q, token %q) = %q, %q, %v", others, token, got, left, err)
		}
	})
}
