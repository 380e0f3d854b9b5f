package probe

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

const (
	userAgent    = "kube-probe/1.37"
	maxBody      = 10 * 1024
	maxRedirects = 10
)

// newHTTPClient makes a client that trusts every server (a pod's certificate is its own
// affair), keeps no connection and goes through no proxy.
func newHTTPClient(protocols *http.Protocols) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			TLSClientConfig:    &tls.Config{InsecureSkipVerify: true},
			DisableKeepAlives:  true,
			DisableCompression: true,
			Proxy:              nil,
			Protocols:          protocols,
		},
		CheckRedirect: followAtHome,
	}
}

func unencryptedHTTP2() *http.Protocols {
	var only http.Protocols
	only.SetUnencryptedHTTP2(true)
	return &only
}

// followAtHome follows redirects within the same host only: a probe must not be used to
// reach other hosts from the node.
func followAtHome(next *http.Request, before []*http.Request) error {
	if next.URL.Hostname() != before[0].URL.Hostname() {
		return http.ErrUseLastResponse
	}
	if len(before) >= maxRedirects {
		return fmt.Errorf("stopped after %d redirects", maxRedirects)
	}
	return nil
}

func (c *Checks) checkHTTP(ctx context.Context, t Target) Answer {
	request, err := httpRequest(ctx, t)
	if err != nil {
		return unsure(err)
	}
	client := c.http
	if wanted := t.Probe.HTTPGet.Protocol; wanted != nil && *wanted == v1.HTTPProtocolHTTP2 {
		client = c.http2
	}
	response, err := client.Do(request)
	if err != nil {
		var wrong *url.Error
		if errors.As(err, &wrong) && ctx.Err() != nil {
			wrong.Err = errors.New("context deadline exceeded (Client.Timeout exceeded while awaiting headers)")
		}
		return failed(err.Error())
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	if err != nil {
		return failed(err.Error())
	}
	if response.StatusCode < 200 || response.StatusCode >= 400 {
		return failed(fmt.Sprintf("HTTP probe failed with statuscode: %d", response.StatusCode))
	}
	if response.StatusCode >= 300 { // one that leads elsewhere was not followed
		return Answer{Result: pod.Passed, Doubt: true, Output: "Probe terminated redirects, Response body: " + string(body)}
	}
	return passed(string(body))
}

func httpRequest(ctx context.Context, t Target) (*http.Request, error) {
	get := t.Probe.HTTPGet
	port, err := portOf(get.Port, t.Container)
	if err != nil {
		return nil, err
	}
	scheme := strings.ToLower(string(get.Scheme))
	if scheme == "" {
		scheme = strings.ToLower(string(v1.URISchemeHTTP))
	}
	where, err := url.Parse(get.Path)
	if err != nil {
		where = &url.URL{Path: get.Path}
	}
	where.Scheme, where.Host = scheme, addressOf(get.Host, port, t)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, where.String(), nil)
	if err != nil {
		return nil, err
	}
	for _, h := range get.HTTPHeaders {
		request.Header.Add(h.Name, h.Value)
		if strings.EqualFold(h.Name, "Host") {
			request.Host = h.Value
		}
	}
	setUnlessGiven(request.Header, "User-Agent", userAgent)
	setUnlessGiven(request.Header, "Accept", "*/*")
	return request, nil
}

// setUnlessGiven: a header that the spec gives as empty is not sent at all.
func setUnlessGiven(h http.Header, name, value string) {
	given, ok := h[name]
	switch {
	case !ok:
		h.Set(name, value)
	case len(given) > 0 && given[0] == "":
		h[name] = nil
	}
}
