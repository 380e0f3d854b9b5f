package kubeapi

import (
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"
	testclock "k8s.io/utils/clock/testing"

	"swiftlet/internal/kubeclient/kubeclienttest"
)

// issuer is a fake API server that issues tokens numbered from 1.
type issuer struct {
	*Tokens
	clock  *testclock.FakePassiveClock
	skew   time.Duration // of the API server's clock
	issued int
	fail   error
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	i := &issuer{clock: testclock.NewFakePassiveClock(time.Unix(1_800_000_000, 0))}
	client := fake.NewClientset()
	client.PrependReactor("create", "serviceaccounts/token", func(a ktesting.Action) (bool, runtime.Object, error) {
		if i.fail != nil {
			return true, nil, i.fail
		}
		i.issued++
		tr := a.(ktesting.CreateAction).GetObject().(*authv1.TokenRequest).DeepCopy()
		life := time.Duration(*tr.Spec.ExpirationSeconds) * time.Second
		tr.Status = authv1.TokenRequestStatus{Token: fmt.Sprint("token-", i.issued), ExpirationTimestamp: metav1.NewTime(i.clock.Now().Add(i.skew + life))}
		return true, tr, nil
	})
	tokens, err := NewTokens(TokensDeps{Client: kubeclienttest.Wrap(client), Clock: i.clock, Log: slog.New(slog.DiscardHandler), Jitter: func() float64 { return 0 }})
	if err != nil {
		t.Fatal(err)
	}
	i.Tokens = tokens
	return i
}

func (i *issuer) step(d time.Duration) { i.clock.SetTime(i.clock.Now().Add(d)) }

func request(uid string, seconds int64, audiences ...string) *authv1.TokenRequest {
	return &authv1.TokenRequest{Spec: authv1.TokenRequestSpec{
		Audiences:         audiences,
		ExpirationSeconds: &seconds,
		BoundObjectRef:    &authv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: "p", UID: types.UID("uid-" + uid)},
	}}
}

func (i *issuer) get(t *testing.T, r *authv1.TokenRequest) string {
	t.Helper()
	token, err := i.Get(t.Context(), "ns", "default", r)
	if err != nil {
		t.Fatal(err)
	}
	return token.Value
}

func TestTokenRenewal(t *testing.T) {
	for _, c := range []struct {
		name    string
		seconds int64
		after   time.Duration
		want    string
	}{
		{"fresh", 1000, 0, "token-1"},
		{"before 80 %", 1000, 799 * time.Second, "token-1"},
		{"at 80 %", 1000, 800 * time.Second, "token-2"},
		{"long lifetime, within a day", 100 * 24 * 3600, 23 * time.Hour, "token-1"},
		{"long lifetime, after a day", 100 * 24 * 3600, 24 * time.Hour, "token-2"},
		{"longest lifetime, within a day", 1 << 32, 23 * time.Hour, "token-1"},
		{"longest lifetime, after a day", 1 << 32, 24 * time.Hour, "token-2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			i := newIssuer(t)
			r := request("a", c.seconds)
			i.get(t, r)
			i.step(c.after)
			if got := i.get(t, r); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestTokenRenewalWhileClocksDiffer(t *testing.T) {
	for _, skew := range []time.Duration{-2 * time.Hour, 2 * time.Hour} {
		i := newIssuer(t)
		i.skew = skew
		r := request("a", 1000)
		i.get(t, r)
		i.step(799 * time.Second)
		before := i.get(t, r)
		i.step(time.Second)
		if at := i.get(t, r); before != "token-1" || at != "token-2" {
			t.Errorf("the API server's clock differs by %v: got %s before 80 %% of the lifetime, %s after", skew, before, at)
		}
	}
}

func TestTokensAreNotShared(t *testing.T) {
	i := newIssuer(t)
	a := i.get(t, request("a", 1000))
	if b := i.get(t, request("b", 1000)); a == b {
		t.Error("two pods share a token")
	}
	if v := i.get(t, request("a", 1000, "vault")); a == v {
		t.Error("two audiences share a token")
	}
	i.Forget(request("a", 0).Spec.BoundObjectRef.UID)
	if again := i.get(t, request("a", 1000)); again == a {
		t.Error("a forgotten token was returned again")
	}
}

func TestCachedTokenDuringOutage(t *testing.T) {
	i := newIssuer(t)
	r := request("a", 1000)
	i.get(t, r)
	i.fail = errors.New("API server is down")
	i.step(900 * time.Second)
	token, err := i.Get(t.Context(), "ns", "default", r)
	if err != nil || token.Value != "token-1" {
		t.Fatalf("got %v, %v; want the cached token while it is valid", token, err)
	}
	if wait := token.RefreshAt.Sub(i.clock.Now()); wait <= 0 || wait > time.Minute {
		t.Errorf("next attempt in %v, want soon", wait)
	}
	i.step(200 * time.Second)
	if _, err := i.Get(t.Context(), "ns", "default", r); err == nil {
		t.Error("an expired token was returned")
	}
}

func TestAdopt(t *testing.T) {
	const now = 1_800_000_000
	body := func(format string, args ...any) string {
		return "h." + base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, format, args...)) + ".s"
	}
	good := `{"aud":["api"],"iat":%d,"exp":%d,"kubernetes.io":{"namespace":"ns","pod":{"uid":"uid-a"},"serviceaccount":{"name":"default"}%s}}`
	for _, c := range []struct {
		name      string
		token     string
		audiences []string
		adopted   bool
	}{
		{"fresh", body(good, now-100, now+900, ""), nil, true},
		{"extended by the server, fresh", body(good, now-100, now+1_000_000, `,"warnafter":2000000000`), nil, true},
		{"extended by the server, old", body(good, now-900, now+1_000_000, fmt.Sprintf(`,"warnafter":%d`, now+100)), nil, false},
		{"due for renewal", body(good, now-900, now+100, ""), nil, false},
		{"expired", body(good, now-2000, now-1000, ""), nil, false},
		{"right audience", body(good, now-100, now+900, ""), []string{"api"}, true},
		{"wrong audience", body(good, now-100, now+900, ""), []string{"vault"}, false},
		{"bound to another pod", body(`{"aud":"api","iat":%d,"exp":%d,"kubernetes.io":{"namespace":"ns","pod":{"uid":"uid-b"},"serviceaccount":{"name":"default"}}}`, now-100, now+900), nil, false},
		{"not a JWT", "garbage", nil, false},
		{"empty", "", nil, false},
		{"claims are not JSON", body("nonsense"), nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			i := newIssuer(t)
			r := request("a", 1000, c.audiences...)
			i.Adopt("ns", "default", r, c.token)
			if got := i.get(t, r); (got == c.token) != c.adopted {
				t.Errorf("got %q, adopted should be %v", got, c.adopted)
			}
		})
	}
}

func TestNoTokensWithoutAPIServer(t *testing.T) {
	tokens, err := NewTokens(TokensDeps{Clock: testclock.NewFakePassiveClock(time.Now()), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tokens.Get(t.Context(), "ns", "default", request("a", 1000)); err == nil {
		t.Error("got a token without an API server")
	}
}

func FuzzParseToken(f *testing.F) {
	f.Add("h.eyJhdWQiOlsiYXBpIl0sImlhdCI6MSwiZXhwIjoyfQ.s")
	f.Add("..")
	tokens, _ := NewTokens(TokensDeps{Clock: testclock.NewFakePassiveClock(time.Now()), Log: slog.New(slog.DiscardHandler)})
	f.Fuzz(func(t *testing.T, value string) {
		if token, ok := tokens.parse("ns", "default", request("a", 1000), value); ok && token.Value != value {
			t.Error("a parsed token has another value")
		}
	})
}
