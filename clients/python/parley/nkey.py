"""Signs the nonce of a nats-server with the seed of an nkey: Ed25519 as in RFC 8032, section 5.1.

It is short, not fast, and its time depends on the key. The nonce is new for each connection.
"""
import base64
import hashlib
import re

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
BASE_Y = 4 * pow(5, P - 2, P) % P
BASE_X = 15112221349535400772501151409588531511454012693041857206046113283949847762202
BASE = (BASE_X, BASE_Y, 1, BASE_X * BASE_Y % P)
USER = 20 << 3  # the first byte of a user's public key, which begins with U


def add(p, q):
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % P, (p[1] + p[0]) * (q[1] + q[0]) % P
    c, d = 2 * p[3] * q[3] * D % P, 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return (e * f % P, g * h % P, f * g % P, e * h % P)


def times(number, point):
    result = (0, 1, 1, 0)
    while number > 0:
        if number & 1:
            result = add(result, point)
        point, number = add(point, point), number >> 1
    return result


def packed(point):
    inverse = pow(point[2], P - 2, P)
    x, y = point[0] * inverse % P, point[1] * inverse % P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def digest(*parts):
    return int.from_bytes(hashlib.sha512(b"".join(parts)).digest(), "little")


def crc16(data):
    crc = 0
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ 0x1021 if crc & 0x8000 else crc << 1) & 0xFFFF
    return crc


def sign(path, nonce):
    """What CONNECT holds besides: `nkey`, which is public, and `sig`. The seed stays here."""
    with open(path, encoding="utf-8") as file:
        return signed(file.read().strip(), nonce)


def credentials(path, nonce):
    """The same of a `.creds` file: its `jwt` and `sig`."""
    with open(path, encoding="utf-8") as file:
        blocks = re.findall(r"-{3,}BEGIN [^-]+-{3,}\s+(\S+)\s+-{3,}END", file.read())
    if len(blocks) != 2:
        raise ValueError(f"the credentials file {path} does not contain a user's JWT and seed")
    return {"jwt": blocks[0], "sig": signed(blocks[1], nonce)["sig"]}


def signed(text, nonce):
    seed = base64.b32decode(text + "=" * (-len(text) % 8))[2:34]
    hashed = hashlib.sha512(seed).digest()
    secret = int.from_bytes(hashed[:32], "little") & (1 << 254) - 8 | 1 << 254
    public = packed(times(secret, BASE))
    r = digest(hashed[32:], nonce) % ORDER
    point = packed(times(r, BASE))
    s = (r + digest(point, public, nonce) * secret) % ORDER
    name = bytes([USER]) + public
    nkey = base64.b32encode(name + crc16(name).to_bytes(2, "little")).decode().rstrip("=")
    signature = base64.urlsafe_b64encode(point + s.to_bytes(32, "little")).decode().rstrip("=")
    return {"nkey": nkey, "sig": signature}
