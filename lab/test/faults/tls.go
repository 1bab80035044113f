package faults

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/http"
	"regexp"
	"strings"
	"time"
)

// forged is what a certificate tries to write into the log as a line of its own.
const forged = "2026-01-01T00:00:00.000Z\terror\tforged by a certificate"

// serverName is what the collector expects in a certificate.
const serverName = "vllm.example.com"

func tlsFaults() []Fault {
	certificate := func(name, what, pattern string, trusted bool, change func(*x509.Certificate)) Fault {
		return Fault{Name: name, What: what, Says: says(pattern), Begin: func(w *World) (Given, error) {
			return secure(w, trusted, change)
		}}
	}
	return []Fault{
		certificate("expired certificate", "it ended an hour ago", "expired", true, func(c *x509.Certificate) {
			c.NotAfter = time.Now().Add(-time.Hour)
		}),
		certificate("certificate of tomorrow", "it begins in an hour", "not yet valid|valid from|only valid|clock", true, func(c *x509.Certificate) {
			c.NotBefore = time.Now().Add(time.Hour)
		}),
		certificate("certificate of another name", "it is for another host", "certificate", true, func(c *x509.Certificate) {
			c.DNSNames = []string{"other.example.com"}
		}),
		certificate("unknown authority", "signed by an authority that the collector does not know", "unknown authority|ca_file", false, func(*x509.Certificate) {}),
		certificate("newline in a certificate", "a DNS name that holds a line of a log", "TLS", true, func(c *x509.Certificate) {
			c.DNSNames = []string{"a\n" + forged + "\nb"}
		}),
		certificate("long certificate", "2000 DNS names", "TLS", true, func(c *x509.Certificate) {
			c.DNSNames = nil
			for range 2000 {
				c.DNSNames = append(c.DNSNames, strings.Repeat("a", 60)+".example.com")
			}
		}),
		{Name: "plain HTTP behind https", What: "the endpoint says https, the server speaks HTTP", Says: says("plain HTTP"), Begin: func(w *World) (Given, error) {
			g, err := served(func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write([]byte(body(1, 1))) })(w)
			g.Target["endpoint"] = "https://" + g.Addr
			return g, err
		}},
		{Name: "TLS behind http", What: "the endpoint says http, the server speaks TLS", Says: says("write https://"), Begin: func(w *World) (Given, error) {
			g, err := secure(w, true, func(*x509.Certificate) {})
			return Given{Addr: g.Addr, Target: map[string]any{"endpoint": "http://" + g.Addr}}, err
		}},
		{Name: "silent handshake", What: "the connection is accepted, the handshake never answered", Says: says("timeout"), Begin: func(w *World) (Given, error) {
			l, err := w.Listen()
			if err != nil {
				return Given{}, err
			}
			// The system accepts the connection; no program does.
			addr := l.Addr().String()
			return Given{Addr: addr, Target: map[string]any{"endpoint": "https://" + addr}}, nil
		}},
	}
}

// secure serves a working page with a certificate that was changed before it was
// signed.
func secure(w *World, trusted bool, change func(*x509.Certificate)) (Given, error) {
	pair, authority, err := certify(change)
	if err != nil {
		return Given{}, err
	}
	l, err := w.Listen()
	if err != nil {
		return Given{}, err
	}
	w.serve(tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}),
		http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", text)
			_, _ = rw.Write([]byte(body(1700000000, 1)))
		}))
	addr := l.Addr().String()
	settings := map[string]any{}
	if trusted {
		file, err := w.File(regexp.MustCompile(`\D`).ReplaceAllString(addr, "-")+".pem", authority)
		if err != nil {
			return Given{}, err
		}
		settings["ca_file"] = file
	}
	// With an address as the server's name Go never shows the names of a certificate.
	settings["server_name_override"] = serverName
	return Given{Addr: addr, Target: map[string]any{"endpoint": "https://" + addr, "tls": settings}}, nil
}

// certify makes an authority and a certificate that it has signed.
func certify(change func(*x509.Certificate)) (pair tls.Certificate, authority []byte, err error) {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair, nil, err
	}
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority of the faults"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(48 * time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, &caKey.PublicKey, caKey)
	if err != nil {
		return pair, nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair, nil, err
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "server"}, NotBefore: time.Now().Add(-24 * time.Hour),
		NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{serverName},
	}
	change(leaf)
	der, err := x509.CreateCertificate(rand.Reader, leaf, ca, &key.PublicKey, caKey)
	if err != nil {
		return pair, nil, err
	}
	authority = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, authority, nil
}
