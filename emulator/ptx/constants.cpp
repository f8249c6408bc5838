// Constant expressions: C's operators over 64-bit integers and doubles. PTX ISA section 4.5.

#include <bit>
#include <charconv>

#include "emulator/ptx/parsing.h"

namespace emu::ptx {
namespace {

Constant integer(int64_t value, bool is_unsigned = false) {
  Constant result;
  result.is_unsigned = is_unsigned;
  result.integer = value;
  return result;
}

Constant real(double value) {
  Constant result;
  result.real = true;
  result.number = value;
  return result;
}

double as_double(const Constant& value) {
  return value.real_width == 32 ? std::bit_cast<float>(static_cast<uint32_t>(value.bits)) : value.number;
}

/// How tightly a binary operator binds; 0 for what is none.
int precedence(const Token& token) {
  if (token.kind != Token::Kind::symbol) return 0;
  switch (token.op) {
    case Token::kOr:
      return 1;
    case Token::kAnd:
      return 2;
    case '|':
      return 3;
    case '^':
      return 4;
    case '&':
      return 5;
    case Token::kEqual:
    case Token::kNotEqual:
      return 6;
    case '<':
    case '>':
    case Token::kLessEqual:
    case Token::kGreaterEqual:
      return 7;
    case Token::kShiftLeft:
    case Token::kShiftRight:
      return 8;
    case '+':
    case '-':
      return 9;
    case '*':
    case '/':
    case '%':
      return 10;
    default:
      return 0;
  }
}

}  // namespace

bool Parser::starts_constant() const {
  switch (token_.kind) {
    case Token::Kind::integer:
    case Token::Kind::real:
      return true;
    case Token::Kind::word:  // .5
      return token_.text[0] >= '0' && token_.text[0] <= '9';
    case Token::Kind::identifier:
      return token_.text == "WARP_SZ";
    case Token::Kind::symbol:
      return token_.op == '-' || token_.op == '+' || token_.op == '~' || token_.op == '!' || token_.op == '(';
    default:
      return false;
  }
}

Constant Parser::constant() {
  const Depth depth(*this, token_);
  Constant condition = binary(1);
  if (!accept('?')) return condition;
  const Constant yes = constant();
  expect(':', "between the values of ?");
  const Constant no = constant();
  return (condition.real ? as_double(condition) != 0 : condition.integer != 0) ? yes : no;
}

int64_t Parser::integer_constant(std::string_view what) {
  const Token at = token_;
  if (!starts_constant()) fail_expected(what);
  const Constant value = constant();
  if (value.real) fail(at, "expected " + std::string(what) + ", which is an integer; found a floating-point constant");
  return value.integer;
}

Constant Parser::binary(int lowest) {
  Constant left = unary();
  for (int level = precedence(token_); level >= lowest && level != 0; level = precedence(token_)) {
    const Token op = take();
    left = combine(op, left, binary(level + 1));
  }
  return left;
}

Constant Parser::combine(const Token& op, const Constant& a, const Constant& b) {
  if (a.real != b.real) fail(op, "this operator has an integer on one side and a floating-point constant on the other");
  if (a.real) {
    const double x = as_double(a), y = as_double(b);
    switch (op.op) {
      case '+':
        return real(x + y);
      case '-':
        return real(x - y);
      case '*':
        return real(x * y);
      case '/':
        return real(x / y);
      case '<':
        return integer(x < y);
      case '>':
        return integer(x > y);
      case Token::kLessEqual:
        return integer(x <= y);
      case Token::kGreaterEqual:
        return integer(x >= y);
      case Token::kEqual:
        return integer(x == y);
      case Token::kNotEqual:
        return integer(x != y);
      default:
        fail(op, "the operator " + std::string(op.text) + " takes integers only");
    }
  }
  const uint64_t x = a.integer, y = b.integer;
  const int64_t sx = a.integer, sy = b.integer;
  const bool u = a.is_unsigned || b.is_unsigned;
  switch (op.op) {
    case '+':
      return integer(x + y, u);
    case '-':
      return integer(x - y, u);
    case '*':
      return integer(x * y, u);
    case '/':
    case '%':
      if (y == 0) fail(op, "division by zero in a constant expression");
      if (u) return integer(op.op == '/' ? x / y : x % y, true);
      if (sy == -1) return integer(op.op == '/' ? -x : 0);  // the smallest integer has no negative
      return integer(op.op == '/' ? sx / sy : sx % sy);
    case Token::kShiftLeft:
      return integer(y < 64 ? x << y : 0, a.is_unsigned);
    case Token::kShiftRight:
      if (a.is_unsigned) return integer(y < 64 ? x >> y : 0, true);
      return integer(sx >> (y < 64 ? y : 63));
    case '<':
      return integer(u ? x < y : sx < sy);
    case '>':
      return integer(u ? x > y : sx > sy);
    case Token::kLessEqual:
      return integer(u ? x <= y : sx <= sy);
    case Token::kGreaterEqual:
      return integer(u ? x >= y : sx >= sy);
    case Token::kEqual:
      return integer(x == y);
    case Token::kNotEqual:
      return integer(x != y);
    case '&':
      return integer(x & y, true);
    case '|':
      return integer(x | y, true);
    case '^':
      return integer(x ^ y, true);
    case Token::kAnd:
      return integer(x != 0 && y != 0);
    default:
      return integer(x != 0 || y != 0);  // kOr
  }
}

Constant Parser::unary() {
  const Depth depth(*this, token_);
  const Token op = token_;
  if (accept('+')) return unary();
  if (accept('-')) {
    Constant value = unary();
    if (value.real) return real(-as_double(value));
    return integer(-static_cast<uint64_t>(value.integer), value.is_unsigned);
  }
  if (accept('~')) {
    const Constant value = unary();
    if (value.real) fail(op, "the operator ~ takes integers only");
    return integer(~value.integer, true);
  }
  if (accept('!')) {
    const Constant value = unary();
    return integer(value.real ? as_double(value) == 0 : value.integer == 0);
  }
  if (accept('(')) {
    const Token cast = token_;
    if (accept_word("s64") || accept_word("u64")) {
      expect(')', "after the type of a cast");
      const Constant value = unary();
      if (value.real) fail(op, "only integers can be cast to ." + std::string(cast.text));
      return integer(value.integer, cast.text == "u64");
    }
    const Constant value = constant();
    expect(')', "to close the expression");
    return value;
  }
  return primary();
}

Constant Parser::primary() {
  if (token_.kind == Token::Kind::integer || token_.kind == Token::Kind::real) return literal(take());
  if (token_.kind == Token::Kind::word && token_.text[0] >= '0' && token_.text[0] <= '9') {
    token_ = lexer_.number_at(token_);
    return literal(take());
  }
  if (token_.is_identifier("WARP_SZ")) {
    take();
    return integer(32);
  }
  fail_expected("a constant");
}

Constant Parser::literal(const Token& token) {
  std::string_view text = token.text;
  const char second = text.size() > 1 ? text[1] : '0';
  if (token.kind == Token::Kind::real) {
    Constant result = real(0);
    if (text[0] == '0' && (second == 'f' || second == 'F' || second == 'd' || second == 'D')) {
      result.real_width = second == 'f' || second == 'F' ? 32 : 64;
      std::from_chars(text.data() + 2, text.data() + text.size(), result.bits, 16);
      return result;
    }
    // from_chars leaves the value alone when it is out of range; IEEE says infinity or zero, as strtod does.
    if (std::from_chars(text.data(), text.data() + text.size(), result.number).ec != std::errc()) {
      result.number = std::strtod(std::string(text).c_str(), nullptr);
    }
    return result;
  }

  const bool suffix = text.back() == 'U';
  if (suffix) text.remove_suffix(1);
  int base = 10;
  if (text[0] == '0' && text.size() > 1) {
    base = second == 'x' || second == 'X' ? 16 : second == 'b' || second == 'B' ? 2 : 8;
    text.remove_prefix(base == 8 ? 1 : 2);
  }
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error == std::errc::result_out_of_range) fail(token, std::string(token.text) + " does not fit 64 bits");
  if (error != std::errc() || end != text.data() + text.size()) {
    fail(token, std::string(token.text) + " has a digit that base " + std::to_string(base) + " does not have");
  }
  return integer(value, suffix || value > INT64_MAX);
}

}  // namespace emu::ptx
