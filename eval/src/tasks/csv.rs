//! Rows of a table in CSV: fields apart by commas, in quotes where they hold one, a quote as two.

/// Rows, with the lines in which they begin.
///
/// # Errors
/// When a quote is not closed, or something follows one.
pub fn rows(text: &str) -> Result<Vec<(usize, Vec<String>)>, String> {
    let (mut rows, mut fields, mut field) = (Vec::new(), Vec::new(), String::new());
    let (mut line, mut begin, mut is_open, mut was_quoted) = (1, 1, false, false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        line += usize::from(c == '\n');
        match c {
            '"' if is_open && chars.peek() == Some(&'"') => field.extend(chars.next()),
            '"' if is_open => (is_open, was_quoted) = (false, true),
            _ if is_open => field.push(c),
            '"' if field.is_empty() && !was_quoted => is_open = true,
            '\r' if chars.peek() == Some(&'\n') => {}
            ',' | '\n' => {
                fields.push(std::mem::take(&mut field));
                was_quoted = false;
                if c == '\n' {
                    rows.push((begin, std::mem::take(&mut fields)));
                    begin = line;
                }
            }
            _ if was_quoted => return Err(format!("line {line}: text behind a closing quote")),
            _ => field.push(c),
        }
    }
    if is_open {
        return Err(format!("line {begin}: a quote is not closed"));
    }
    if !field.is_empty() || !fields.is_empty() || was_quoted {
        fields.push(field);
        rows.push((begin, fields));
    }
    rows.retain(|(_, fields)| fields.len() > 1 || fields.iter().any(|field| !field.is_empty()));
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::rows;

    #[test]
    fn rows_are_those_of_pythons_reader() {
        let text = "a,\"b, \"\"c\"\"\",\n\"two\nlines\",x,y\r\n\n,,\"\"";
        let found = rows(text).unwrap();
        let expected =
            [(1, vec!["a", "b, \"c\"", ""]), (2, vec!["two\nlines", "x", "y"]), (5, vec!["", "", ""])];
        assert_eq!(found, expected.map(|(line, row)| (line, row.into_iter().map(str::to_owned).collect())));
        assert_eq!(rows("a,\"b").unwrap_err(), "line 1: a quote is not closed");
        assert_eq!(rows("a\n\"b\"c,d").unwrap_err(), "line 2: text behind a closing quote");
        assert!(rows("").unwrap().is_empty());
    }
}
